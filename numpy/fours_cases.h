// Numbers for which glibc's function of FMA processors does not give the double next to the true value (one in a thousand is such): any
// other way to compute it gives something else for some of them. Found with Python's decimal module, with mpmath and libquadmath.
#pragma once

namespace dalsegno::numpy::fours {

// clang-format off
constexpr double kHardExp[] = {
    -0x1.eb55aedc5ad43p+3, 0x1.7894f2331fcb0p+2, -0x1.dc3e52a9f4c63p+4, -0x1.a1792fdac6ae6p+3, -0x1.1a0f6a4441b18p+2,
    0x1.6ee37a5e13ef0p+2, 0x1.b2a6cbdee7574p+4, 0x1.48fad7285f990p+1, 0x1.735b390fadec8p+3, -0x1.3748e787a58d4p+4,
    0x1.33cf8d0a61b78p+2, 0x1.19ef1788d5250p+2, 0x1.884166d7d2878p+3, -0x1.5afeb1ad415a4p+2, -0x1.875edd935f348p+1,
    -0x1.09405f4d60f9dp+4, -0x1.630ad369088bcp+2, 0x1.deee130fa90b0p+3, 0x1.840ffc66dac10p+3, -0x1.cc0a60021039fp+4,
    0x1.a39ea2ebdf286p+4, -0x1.4b65326698b05p+4, -0x1.15febc7964c73p+4, 0x1.a00434f1b55b2p+4, 0x1.4a26cdc4266b0p+4,
    0x1.5df6fde4f7c90p+1, -0x1.a2f4bca04cdc1p+4, -0x1.99c98eccac664p+3, 0x1.363944f3309f8p+3, 0x1.5637bcc98e0a6p+4,
    -0x1.683bcd3bf9b08p+2, 0x1.590bbbaefc860p-1,
};
constexpr double kHardLog[] = {
    0x1.114b0bfc14a28p+0, 0x1.1246f82f75f84p+0, 0x1.d9d929fc58175p+2, 0x1.d3bbae0a2dc64p-1, 0x1.13cb7972632b8p+0,
    0x1.0ba4a94f43adfp+0, 0x1.72aff62a37385p+2, 0x1.ce0cdb3817fbdp-1, 0x1.13a9bdb7d3870p+0, 0x1.15a9972aa9e52p+0,
    0x1.08578decb422ap+0, 0x1.e5c8e554f6fbcp-1, 0x1.db680551cc904p-1, 0x1.d5eb795146815p-1, 0x1.e57dbd0001d02p-1,
    0x1.d8bb177dd628cp-1, 0x1.dfd7474392dcfp-1, 0x1.1993d4ca13f5ap+0, 0x1.16a0e4503e58dp+0, 0x1.140fad2c05c72p+0,
    0x1.180f3ac5fe3c5p+0, 0x1.df48e10bf7511p-1, 0x1.0fd39052823dep+0, 0x1.1407ab22cff40p+0, 0x1.eab26fe2c9afcp+2,
    0x1.196d827934718p+0, 0x1.1247975591e74p+0, 0x1.0fa5f9327bb91p+0, 0x1.162df32bcaa48p+0, 0x1.159c63338a67dp+0,
    0x1.c5922b493bc4fp+2, 0x1.1202347c8b021p+0,
};
constexpr double kHardSin[] = {
    -0x1.9ddd81ff6f428p-1, 0x1.897c7d5e45c20p-3, 0x1.5978de60fb250p-1, 0x1.eae122a9c33c0p-1, 0x1.c4e84fc1cfe88p-2,
    -0x1.75aab6aecc1d4p+1, 0x1.7e4e1cd2d4b38p+1, -0x1.cbd64335de864p+4, 0x1.73c7004f4155cp+1, -0x1.d989ea5ea0910p-3,
    0x1.ef60dc224fe60p-2, 0x1.7f697444ac6bcp+1, -0x1.7a31c37c20801p+6, -0x1.318506f3b565fp+1, 0x1.6ad3715b09e70p-3,
    0x1.747e1ba2d38bap+6, -0x1.0383a34a5624ap+1, 0x1.6299418b95318p+1, 0x1.3969c61e5c680p-1, -0x1.c70895ffe79bbp+5,
    0x1.e9b59d8c2c268p-3, 0x1.72d3d9f21409ap+1, 0x1.60bdbb27b029cp+5, 0x1.2939cb4db2ae0p+6, 0x1.85aadf033ab10p-2,
    0x1.98f99460dd810p+5, 0x1.d3165e29ac750p+4, -0x1.44e0e4adf0954p-2, -0x1.2fb7935af3770p-2, -0x1.2aa23af023bd8p+1,
    0x1.dc4b29212f8dcp-2, 0x1.80e60e257139cp+5,
};
constexpr double kHardCos[] = {
    -0x1.c93514c98fb3cp+0, -0x1.8a61d5b05bda1p+6, 0x1.bca0d1e4b92fcp+5, 0x1.31ec529afa462p+6, -0x1.79f5e7ae0aaa5p+0,
    -0x1.db665d9ca6230p-1, 0x1.1f2bf40628bdcp+5, 0x1.039aefb730728p+0, 0x1.62aa0976f34d0p+0, 0x1.bb531e46e52bcp+0,
    -0x1.5cd197e9ddca4p-1, 0x1.0fa02decd97e8p+4, 0x1.b4bac32243948p-2, 0x1.1f899e7c05158p+4, -0x1.2d7cfdf0dab20p+1,
    0x1.c4646be366a08p+0, 0x1.49b82e4fa017ap-1, -0x1.74c3b5e8a6b7ap+6, 0x1.7b528f5015c44p+6, -0x1.63db9171edf1ap+0,
    0x1.eb6587fcb4c04p+5, -0x1.134667850de7cp+0, -0x1.349599acc5b1cp+1, 0x1.a57c265537ae4p+5, 0x1.526b40474f628p+5,
    0x1.311d310df0ba8p+0, 0x1.f69b94e3cee4cp+0, 0x1.5b8ff07586cbcp+6, 0x1.6345c910e8360p+0, -0x1.0f8b4ab5c6238p+6,
    -0x1.8607158235830p-2, 0x1.86ab9d1d1d5e0p+5,
};
constexpr double kHardLegs[] = {
    -0x1.8bc52c3143038p+1, 0x1.9b94795964d6ep-1, -0x1.e4cc83f7a373ap+1, 0x1.2f5d40a55e2b6p+0, -0x1.58cda4978f6aep+0,
    0x1.3347562676d36p+1, 0x1.6d99375e7ee3bp-1, 0x1.55204f6684787p+0, -0x1.2164499d6b314p+0, -0x1.7f96ac48a961ap+0,
    -0x1.b730dbfee0b46p-1, 0x1.ec4a601140ae0p+1, 0x1.15eee32fdf46bp+1, 0x1.0425ad05a0498p+1, 0x1.c23d708c7af58p+0,
    -0x1.6581e6faa052ap+0,
};
constexpr double kHardOtherLegs[] = {
    -0x1.a506fa591cf96p+2, 0x1.33dee3e28121fp-2, -0x1.1023805e50c34p+1, 0x1.9bc21c190d30ap-1, -0x1.15cc95f6f4116p+1,
    0x1.2d698ed68930ap+1, 0x1.bcc9878273f9bp-2, 0x1.59769e9899cb5p-2, -0x1.f01396f6c3858p+0, -0x1.e59fa3e602ae0p-1,
    -0x1.63f7cb5a2fa31p+1, 0x1.f44dc888c1ff2p-2, 0x1.7e7edb3b9af05p+0, 0x1.14b4f5a779662p+3, 0x1.9861863c68ad3p+1,
    -0x1.6d22b1634f5f5p+2,
};
constexpr double kHardBases[] = {
    0x1.360cdc6227afep+2, 0x1.63146b5054290p+1, 0x1.d0106de975e00p+1, 0x1.0a338bfa78a9ap+0, 0x1.6633dd3953de8p-3,
    0x1.be030d1fda9f0p-5, 0x1.b06ba48e94acbp+1, 0x1.0f445f0db9215p+1, 0x1.7f4a02d70cc34p+0, 0x1.656df620081a7p+1,
    0x1.19d6ae0d96fdcp+0, 0x1.41e5c5234dfc3p+1, 0x1.0c3520ed870fcp+2, 0x1.19501bb30865dp+1, 0x1.3c64f41509354p+2,
    0x1.58f7de59833bdp+1, 0x1.8ccc897c59127p-1, 0x1.037af644cce75p+2, 0x1.2cdd94bba8041p+2, 0x1.55dec2cb2843dp+0,
    0x1.0a0e878361b1bp+1, 0x1.982fac3395373p-1, 0x1.2a0dd05eb447bp-1, 0x1.01687206e44bep+2, 0x1.75e0fd4e9eb04p+1,
    0x1.4197070c6c810p+0, 0x1.18c8f9248c774p+0, 0x1.fc097ea1cc944p-3, 0x1.392ee88ff051bp+2, 0x1.7c5dbda38a3e5p+0,
    0x1.2ebe9835f8b14p+1, 0x1.1da2e6f0cd4f7p+2,
};
constexpr double kHardExponents[] = {
    0x1.8000000000000p+0, 0x1.3333333333333p-2, 0x1.8000000000000p+1, 0x1.8000000000000p+1, 0x1.1c960fa15bd74p+2,
    0x1.8000000000000p+1, 0x1.3333333333333p-2, -0x1.02bb1f571d7eep+3, -0x1.4000000000000p+1, 0x1.8000000000000p+1,
    0x1.8000000000000p+0, -0x1.4000000000000p+1, 0x1.3333333333333p-2, -0x1.1eb642eb5b03dp+3, 0x1.8000000000000p+1,
    0x1.199999999999ap+1, 0x1.199999999999ap+1, 0x1.3333333333333p-2, 0x1.8000000000000p+0, 0x1.8000000000000p+0,
    0x1.8000000000000p+0, -0x1.4000000000000p+1, 0x1.8000000000000p+1, -0x1.4000000000000p+1, 0x1.199999999999ap+1,
    0x1.6480d206e4910p+2, 0x1.8000000000000p+1, 0x1.199999999999ap+1, 0x1.405ccc99ffd3cp+2, -0x1.e169be146a528p+0,
    0x1.8000000000000p+0, 0x1.1e167f15f470ap+3,
};
// Of these, too, the most do not outlive that an operation more or less is fused.
constexpr double kHardArctan[] = {
    -0x1.6d6dade82b783p-2, 0x1.d373feb58fbcep-5, -0x1.880f953d4f80ap-4, 0x1.e3ccdd2d12912p-4, 0x1.f5f917ededdcbp-2,
    0x1.90270362aab6fp+3, -0x1.41fb459138f9ep-2, 0x1.0ad0ddc43192ap+3, 0x1.1e85c790bfa68p+4, -0x1.c18523c91d884p+2,
    0x1.4992019775864p+4, -0x1.9080c3af4af2bp+3, 0x1.d66c4871bcddap+1, -0x1.31d5109e7f86bp+4, -0x1.d34886ecfb1fdp-5,
    -0x1.a209d99a5c50bp-5, 0x1.d700bb77a587cp-4, -0x1.2dee2f9fa1ae8p-4, 0x1.11e6c43202ca2p-1, -0x1.500d768a868ccp-5,
    -0x1.4b71981ec26aap-6, 0x1.a247e57d869e0p+3, 0x1.e57ed1ce31b9cp-2, 0x1.e9ad5b6d1b132p-2, 0x1.08a1315b5eca2p+4,
    0x1.f203abb16e941p-2, 0x1.927df1f31feb8p-2, -0x1.0d48d721c8ed0p+4, 0x1.55e87b35bb0b4p-2, -0x1.d31f374f82e5fp-5,
    -0x1.51170a39c9652p+4, 0x1.1c4fe4856d8e0p+2,
};
constexpr double kHardHeights[] = {
    -0x1.824e27892b8c8p-1, 0x1.2de5b4d2df0d0p+0, -0x1.6eedf425fcaf4p+1, 0x1.67a1dda850e3ep+1, -0x1.73de7cffbc31ap+1,
    -0x1.c1087bf89cc78p-1, -0x1.aa5f4267031dap-3, 0x1.dc8a68be029f9p-10, 0x1.65e86ccf6982ep+1, -0x1.13374aec0c09ap-3,
    -0x1.4cf5274f7c072p+1, -0x1.a12f2bf0158c0p-1, 0x1.25c882ecd9990p-3, -0x1.dccd6ecf81c62p+1, -0x1.3f599490488d8p+1,
    -0x1.240a1dfac7cd8p-1, -0x1.28093d85dac9dp-3, 0x1.f141c28ac9630p-2, 0x1.a07c5bada9b96p+1, -0x1.37905ac6d482ep+1,
    0x1.5fcd21192e4f0p-2, 0x1.83a3604680778p+1, -0x1.67d66a2c91696p+1, -0x1.d660549cc1211p-4, 0x1.01414a81a4df8p-3,
    0x1.a5ec97d648740p-6, -0x1.158f9d342d3e4p+1, 0x1.0fa2b8443c424p+1, 0x1.e037421cda338p-1, -0x1.29a30b2b0a8b0p-1,
    0x1.b995f80d1d15ap+1, 0x1.d1bd55a2ea6d0p-2,
};
constexpr double kHardWidths[] = {
    -0x1.a01b926db3b9cp+0, -0x1.c1330cde52bf4p-5, -0x1.87894e4906200p-3, 0x1.4d34e537b0c08p+0, 0x1.55d09e2a46e71p-3,
    0x1.f4a2bd01ecc6ep+1, 0x1.f4a368d644ff0p+1, 0x1.483fa54d2d100p-5, 0x1.2df8fe5794998p-3, 0x1.5c26d609da99ap+1,
    -0x1.f68f0b6d6889cp+1, 0x1.d2bf95fb46e7cp+1, 0x1.be39b3f1c7090p+1, 0x1.1a63ef791399cp+1, -0x1.e75a39f57be7ep+1,
    0x1.0a1a3beff566cp+1, -0x1.b3cd5f62e1730p+1, 0x1.91f42a1efd266p+1, 0x1.d1d099ba9f368p+1, 0x1.1c1d54a6f5c06p+1,
    0x1.2c1ad8d214df1p-6, 0x1.31291ca906370p-2, -0x1.5f7090e10d9ebp-3, -0x1.3e84d9f7124bcp+1, 0x1.915caf8e3e6a8p+1,
    -0x1.ccdf0a53ee4a0p-2, 0x1.1909211abcb51p-4, -0x1.da0d20cfc6408p-1, -0x1.1097f3f017110p-2, -0x1.b28c965d0854bp-6,
    -0x1.286f77840e16bp-3, 0x1.084047b6024cep+1,
};
constexpr double kHardLog1p[] = {
    0x1.e4757c2ed7018p-5, -0x1.43292275af9c7p-1, 0x1.4d8bab9df2338p+2, 0x1.7467b0d366711p+7, 0x1.9dd94aa5c32d2p-3,
    -0x1.19d37eea363f3p-1, 0x1.80f68ce07fffap+2, 0x1.4d1fe05a20974p+8, -0x1.28963c7002d8dp-2, -0x1.34f8248de8fe0p-2,
    0x1.978656becddf8p+2, 0x1.961b1106fe3b8p+9, 0x1.536642b47a6c7p-2, -0x1.6e93c79cdbf28p-2, 0x1.769afe998ade7p+2,
    0x1.a3669a67fca38p+8, 0x1.9f94d83965646p-3, -0x1.8b6371d9df356p-2, 0x1.73f6d1f01e681p+2, 0x1.d1fa1e796536ep+9,
    -0x1.690ae5194b208p-5, -0x1.171e26fc9a74bp-1, 0x1.417c60e28d9a0p+2, 0x1.8b7bfa29ddc03p+9, 0x1.8fbeca626a764p-4,
    -0x1.b21d8665aacc0p-1, 0x1.3ef14c808739ep+2, 0x1.4fa00838d3d5ep+9, -0x1.1889d6e5d17c6p-3, -0x1.5e72c2168ad0ep-1,
    0x1.7e34881fdf550p-1, 0x1.6947983105ddep+8,
};
constexpr double kHardLog2[] = {
    0x1.f1843574f16ddp-1, 0x1.7c4e98932a7b5p-1, 0x1.5b35d0ddad6fdp+0, 0x1.4fe4b0dcaa80dp+9, 0x1.06d8af96ab8aap+0,
    0x1.4b666ea18b520p-2, 0x1.68b94294c7872p+1, 0x1.18fedb691c01cp+5, 0x1.eb1076320240dp-1, 0x1.5e8dd307ab753p-1,
    0x1.4e8feec71c738p+1, 0x1.bf8c65bf92e09p+9, 0x1.efa56114d3597p-1, 0x1.2ada577d98ec4p-2, 0x1.f42179a4acdfcp+1,
    0x1.ac0596997026cp+9, 0x1.06f1cb75cce3cp+0, 0x1.a7eba829bdfccp-1, 0x1.20b77444be1b5p+0, 0x1.10754e69559e0p+0,
    0x1.f33dbaa41fe15p-1, 0x1.fb685bfcf212ap-2, 0x1.294625692fd51p+0, 0x1.ec5a38b3a7379p+7, 0x1.078b19206fbe1p+0,
    0x1.cc00651697ee1p-1, 0x1.0683b618bad08p+3, 0x1.b42685b94fda7p+8, 0x1.0884669a143f9p+0, 0x1.97133a7d93766p-1,
    0x1.89c80b109d042p+1, 0x1.24ba424166f8cp+9,
};
constexpr double kHardExpm1[] = {
    0x1.2a2473546ed89p-2, 0x1.91f2b90809211p-2, 0x1.00f72ce2e6abap-1, -0x1.87b0998cb4189p-2, -0x1.30d85c7fecf60p+0,
    0x1.3a5a28af6b3bfp+0, 0x1.20096c73940f1p+5, 0x1.7e18e583351e7p+8, -0x1.7c377b141ebeep-3, 0x1.7568dfe9235b0p-2,
    0x1.ed6bc09b18b34p-1, -0x1.f7a5bb4c28056p-2, -0x1.56038602bfa0bp+1, 0x1.d0d51d0fb5923p+2, 0x1.022359945013ap+5,
    0x1.6c1de0b1dd962p+7, -0x1.5c099209d9185p-3, 0x1.b8381c97c3a18p-2, 0x1.f5aec6428d212p-1, -0x1.85ed404f9c977p-2,
    -0x1.03ccd63464fd8p+1, 0x1.2956e965819adp+0, 0x1.2fdb573298b2ep+5, 0x1.d2a63c527e8ccp+8, -0x1.b12cb8476434ep-3,
    0x1.6f4728d0b549ep-2, 0x1.a846e35553aecp-1, -0x1.9430d50140702p-2, -0x1.3bf4d4acfe93ep+1, 0x1.2cec1b8de2732p+2,
    0x1.04508acef8488p+4, 0x1.5f3af9d3f8fdap+6,
};
constexpr double kHardLog10[] = {
    0x1.f59c58ca2da70p-1, 0x1.df2d825b363bdp-1, 0x1.1e09cd6078d09p+0, 0x1.d6e031e420a27p+7, 0x1.f440a2417b4c6p-1,
    0x1.5a00ae727cfe4p-1, 0x1.d32b51cb38699p+0, 0x1.d7277826c3b15p+7, 0x1.f5d6e818c14a1p-1, 0x1.376b75e4d00dcp-1,
    0x1.de0109e5bbad2p+2, 0x1.eb38cedb5f261p+5, 0x1.02dd7740e4d3ep+0, 0x1.aebecaddb1cccp-1, 0x1.15f4d1ad0caa7p+3,
    0x1.424b5e823570dp+7, 0x1.ef9661f62a795p-1, 0x1.b979bc9f499e1p-3, 0x1.7072aedcb12c9p+2, 0x1.50ae837c978e2p+9,
    0x1.0322665ff04bep+0, 0x1.0f7046c6957abp-2, 0x1.2f930131fc8d9p+0, 0x1.b93c7b37784cdp+6, 0x1.086aaac6f5db0p+0,
    0x1.d9cea01b7185dp-1, 0x1.4da98f126acddp+0, 0x1.8d8376be04c9dp+9, 0x1.0b07b77c15055p+0, 0x1.7b21068829c91p-2,
    0x1.619cd6da89dacp+2, 0x1.c9c16c75b4388p+9,
};
// Of NumPy's own vector code (tanh): glibc's gives something else, too.
constexpr double kHardTanh[] = {
    0x1.5bd1bae370d4dp-3, 0x1.b3574bb1a1065p-3, -0x1.0086dfc98ca37p-2, 0x1.dcfe617ee50e6p-2, 0x1.109c4f92af22ep-1,
    -0x1.eebf904e70084p-1, 0x1.4e5b86bdfdab4p+0, 0x1.ba31599951a99p+0, -0x1.7e7112d216184p+1, 0x1.a4a8882449d84p+1,
    0x1.34c0b86f20102p+2, -0x1.b896cafdd1c4ep+2, 0x1.0217e4850544fp+3, 0x1.c98328dd0359ep+3, -0x1.17e0695023103p+4,
    0x1.e6db3bae7503bp-5, 0x1.a5cf3e620bebdp-3, -0x1.2ad4a5f2660f8p-2, 0x1.fc4a33f8bcb07p-2, 0x1.33d16a6f45678p-1,
    -0x1.9c34e9b9ea50fp-1, 0x1.6c38e9101de14p+0, 0x1.b87c5bc3f94d6p+0, -0x1.046f6567d4ea0p+1, 0x1.b2f47d7c23d15p+1,
    0x1.5d90f01122a46p+2, -0x1.8f089fba1e659p+2, 0x1.3f0f77c8e2b01p+3, 0x1.fee58dd301dc9p+3, -0x1.08d7af26f207fp+4,
    0x1.883583c3eb10fp-4, 0x1.d66b7065b11eep-3,
};
constexpr double kHardArcsin[] = {
    0x1.790472d683766p-4, -0x1.ed766d90c6206p-4, -0x1.bd1b73da5b568p-4, -0x1.63741a5d42824p-6, 0x1.7fe6d5f0c13f9p-3,
    0x1.61f1800d8925ap-3, 0x1.59ef270d8bd79p-3, 0x1.cdcaf0e5f154bp-3, -0x1.027e05be6cd54p-2, -0x1.2ff765188cf7cp-2,
    -0x1.cf4747ba6e84dp-2, 0x1.237a83c3287fbp-2, 0x1.e93f3a5c39980p-2, -0x1.2e59500cea6dcp-1, 0x1.43f257428b215p-1,
    -0x1.2bd6a422d8ecbp-1, 0x1.453b69441a6f2p-1, 0x1.d5efc8d365004p-1, 0x1.943c437a73af4p-1, -0x1.d38370b858349p-1,
    -0x1.bf53be60019e9p-1, -0x1.dba8de94567f3p-1, 0x1.e4334d3e470e2p-1, 0x1.ee0b4039e2241p-1, 0x1.edefdebd73ec8p-1,
    0x1.f89b9c226ab03p-1, -0x1.fa9ad562e93cep-1, -0x1.f4b9b6065fe52p-1, 0x1.f00a5530e4e40p-1, 0x1.f89f116267f4fp-1,
    -0x1.f85d106558132p-1, -0x1.ff286b85efea4p-1,
};
constexpr double kHardArccos[] = {
    -0x1.f3a5ad37b691cp-4, -0x1.ca889760a7349p-4, 0x1.b4678f16c14e9p-4, 0x1.6beb520219f99p-6, 0x1.e3553d4fb1b42p-3,
    -0x1.0600083edf5c8p-3, -0x1.b5a706dc5ef60p-3, -0x1.a0232b161cff0p-3, 0x1.ac06a2bffe778p-2, -0x1.3ffd26226ad38p-2,
    0x1.a85d8d73b9ca5p-2, -0x1.7c7e9c0f8eaffp-2, 0x1.6fed03416371ap-2, -0x1.1799644661869p-1, 0x1.51cfd3ee1a0f3p-1,
    0x1.65c7e3e4f271cp-1, 0x1.4bc96f5ccb982p-1, 0x1.981d5b909ecf5p-1, 0x1.cc473e038edf9p-1, 0x1.a159df05ebeeap-1,
    0x1.bc3db008ac684p-1, 0x1.e2cff7f66a29ep-1, 0x1.e5f759f9152fbp-1, 0x1.ea1eed5738942p-1, 0x1.ec1d1588a3394p-1,
    0x1.f2b0e429e19c4p-1, -0x1.f501c2862549cp-1, 0x1.fb054645cf8c5p-1, 0x1.fbcfd17e3d7dbp-1, 0x1.f37aa6b1cea45p-1,
    0x1.f5ad01a3099a5p-1, 0x1.f19263f06acf6p-1,
};
// clang-format on

}  // namespace dalsegno::numpy::fours
