// Numbers for which glibc's function of FMA processors does not give the double next to the true value (one in a thousand is such): any
// other way to compute it gives something else for some of them. Found with Python's decimal module.
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
// clang-format on

}  // namespace dalsegno::numpy::fours
