/* Bessel functions of the first and second kind, of orders 0 and 1. Up to 8 a minimax fit replaces the power series;
   the second kind adds a logarithm. From 8 on the function is a wave with amplitude series P and Q (NIST Digital
   Library of Mathematical Functions, 10.8 and 10.17). The fits are our own. */

FUNCTION f32 bessel_j0_near_f32(f32 t) {
    /* J0(x) for t = x**2 / 32 - 1, x up to 8. */
    f32 p = 3.89537963e-05f;
    p = p * t - 0.000451058411f;
    p = p * t + 0.00405753776f;
    p = p * t - 0.0284651928f;
    p = p * t + 0.145989135f;
    p = p * t - 0.507471323f;
    p = p * t + 1.03837943f;
    p = p * t - 0.808088243f;
    p = p * t - 0.648469269f;
    p = p * t + 0.930301189f;
    return p * t + 0.0458296649f;
}

FUNCTION f64 bessel_j0_near_f64(f64 t) {
    /* J0(x) for t = x**2 / 32 - 1, x up to 8. */
    f64 p = -1.243301171273326e-11;
    p = p * t + 3.3794626319436793e-10;
    p = p * t - 7.91532308295207e-09;
    p = p * t + 1.5955848859935914e-07;
    p = p * t - 2.717749223632098e-06;
    p = p * t + 3.847320005801417e-05;
    p = p * t - 0.0004435459224311503;
    p = p * t + 0.004058078988108771;
    p = p * t - 0.028472718610882047;
    p = p * t + 0.14598884856785538;
    p = p * t - 0.5074680458471;
    p = p * t + 1.0383794611436883;
    p = p * t - 0.8080888076696872;
    p = p * t - 0.6484692830871821;
    p = p * t + 0.9303012472958572;
    return p * t + 0.045829664859813754;
}

FUNCTION f32 bessel_j1_near_f32(f32 t) {
    /* J1(x) / x for t = x**2 / 32 - 1, x up to 8. */
    f32 p = 1.88781246e-06f;
    p = p * t - 2.43762806e-05f;
    p = p * t + 0.000249472767f;
    p = p * t - 0.00202870858f;
    p = p * t + 0.0124568259f;
    p = p * t - 0.0547459647f;
    p = p * t + 0.15858376f;
    p = p * t - 0.259594828f;
    p = p * t + 0.151516646f;
    p = p * t + 0.0810586587f;
    return p * t - 0.0581438281f;
}

FUNCTION f64 bessel_j1_near_f64(f64 t) {
    /* J1(x) / x for t = x**2 / 32 - 1, x up to 8. */
    f64 p = -4.0045728425886457e-13;
    p = p * t + 1.1658972367678622e-11;
    p = p * t - 2.943013798001659e-10;
    p = p * t + 6.431190177265836e-09;
    p = p * t - 1.196708186787801e-07;
    p = p * t + 1.8684526037206013e-06;
    p = p * t - 2.404574865968694e-05;
    p = p * t + 0.0002494945813597261;
    p = p * t - 0.0020290394945705996;
    p = p * t + 0.012456814392263375;
    p = p * t - 0.05474581821284722;
    p = p * t + 0.15858376432721838;
    p = p * t - 0.2595948652859303;
    p = p * t + 0.15151665143806636;
    p = p * t + 0.08105866038589796;
    return p * t - 0.05814382795599107;
}

FUNCTION f32 bessel_y0_near_f32(f32 t) {
    /* Y0(x) - 2 / pi log(x) J0(x) for t = x**2 / 32 - 1, x up to 8. */
    f32 p = 5.37476581e-06f;
    p = p * t - 7.37650334e-05f;
    p = p * t + 0.000806091703f;
    p = p * t - 0.0070246486f;
    p = p * t + 0.0463670865f;
    p = p * t - 0.218958035f;
    p = p * t + 0.672177076f;
    p = p * t - 1.07754755f;
    p = p * t + 0.144126326f;
    p = p * t + 1.64709651f;
    p = p * t - 0.828435898f;
    return p * t - 0.382250667f;
}

FUNCTION f64 bessel_y0_near_f64(f64 t) {
    /* Y0(x) - 2 / pi log(x) J0(x) for t = x**2 / 32 - 1, x up to 8. */
    f64 p = -8.840112096073101e-13;
    p = p * t + 2.6926938054524057e-11;
    p = p * t - 7.13046146536789e-10;
    p = p * t + 1.6390875014077404e-08;
    p = p * t - 3.2185078445935923e-07;
    p = p * t + 5.3213188103997145e-06;
    p = p * t - 7.279541882454115e-05;
    p = p * t + 0.000806158605961636;
    p = p * t - 0.00702574105727097;
    p = p * t + 0.046367047681375125;
    p = p * t - 0.21895747096171628;
    p = p * t + 0.6721770783431679;
    p = p * t - 1.0775477338215995;
    p = p * t + 0.14412632369302475;
    p = p * t + 1.6470964788745466;
    p = p * t - 0.8284358903604587;
    return p * t - 0.382250654459425;
}

FUNCTION f32 bessel_y1_near_f32(f32 t) {
    /* (Y1(x) - 2 / pi (log(x) J1(x) - 1 / x)) / x for t = x**2 / 32 - 1, x up to 8. */
    f32 p = -3.64060156e-06f;
    p = p * t + 4.53319808e-05f;
    p = p * t - 0.000443772733f;
    p = p * t + 0.00342183211f;
    p = p * t - 0.01962878f;
    p = p * t + 0.0785481557f;
    p = p * t - 0.196398392f;
    p = p * t + 0.235072047f;
    p = p * t + 0.0233675707f;
    p = p * t - 0.243377432f;
    return p * t + 0.0707598552f;
}

FUNCTION f64 bessel_y1_near_f64(f64 t) {
    /* (Y1(x) - 2 / pi (log(x) J1(x) - 1 / x)) / x for t = x**2 / 32 - 1, x up to 8. */
    f64 p = 8.760001143977853e-13;
    p = p * t - 2.499531546171249e-11;
    p = p * t + 6.169688029066965e-10;
    p = p * t - 1.3153147367094951e-08;
    p = p * t + 2.3804930420514178e-07;
    p = p * t - 3.601000022590458e-06;
    p = p * t + 4.467433012646365e-05;
    p = p * t - 0.0004438173434420147;
    p = p * t + 0.0034224907399188495;
    p = p * t - 0.01962875683311711;
    p = p * t + 0.07854786922242532;
    p = p * t - 0.19639839859930203;
    p = p * t + 0.23507209206669755;
    p = p * t + 0.02336757172099348;
    p = p * t - 0.24337743079193114;
    return p * t + 0.07075985882118005;
}

FUNCTION f32 bessel_0_even_f32(f32 t) {
    /* P of order 0 for t = 128 / x**2 - 1, x from 8 on. */
    f32 p = -2.06823785e-07f;
    p = p * t + 6.1503697e-06f;
    p = p * t - 0.000536366948f;
    return p * t + 0.9994573f;
}

FUNCTION f64 bessel_0_even_f64(f64 t) {
    /* P of order 0 for t = 128 / x**2 - 1, x from 8 on. */
    f64 p = 3.339452259070809e-14;
    p = p * t - 1.0251790052831013e-13;
    p = p * t + 2.4531772967345006e-13;
    p = p * t - 1.0157485021065676e-12;
    p = p * t + 4.786995821368028e-12;
    p = p * t - 2.491146535471666e-11;
    p = p * t + 1.5500565496632596e-10;
    p = p * t - 1.2121098178951377e-09;
    p = p * t + 1.280376144080092e-08;
    p = p * t - 2.0527448261170675e-07;
    p = p * t + 6.137416080109497e-06;
    p = p * t - 0.0005363673192129672;
    return p * t + 0.9994572757882519;
}

FUNCTION f32 bessel_0_odd_f32(f32 t) {
    /* Q x / 8 of order 0 for t = 128 / x**2 - 1, x from 8 on. */
    f32 p = 7.18898292e-08f;
    p = p * t - 1.48289973e-06f;
    p = p * t + 6.83312828e-05f;
    return p * t - 0.0155551136f;
}

FUNCTION f64 bessel_0_odd_f64(f64 t) {
    /* Q x / 8 of order 0 for t = 128 / x**2 - 1, x from 8 on. */
    f64 p = 1.2731367623367943e-14;
    p = p * t - 3.417306155904644e-14;
    p = p * t + 5.756325587995953e-14;
    p = p * t - 2.0979723806283122e-13;
    p = p * t + 8.689732394690306e-13;
    p = p * t - 3.605043103124562e-12;
    p = p * t + 1.7029372022291316e-11;
    p = p * t - 9.469830663448226e-11;
    p = p * t + 6.432789503382007e-10;
    p = p * t - 5.668717017471248e-09;
    p = p * t + 7.106214852192226e-08;
    p = p * t - 1.477138832589449e-06;
    p = p * t + 6.833149099344083e-05;
    return p * t - 0.01555511387951352;
}

FUNCTION f32 bessel_1_even_f32(f32 t) {
    /* P of order 1 for t = 128 / x**2 - 1, x from 8 on. */
    f32 p = 2.47105362e-07f;
    p = p * t - 7.97456869e-06f;
    p = p * t + 0.000898804516f;
    return p * t + 1.00090706f;
}

FUNCTION f64 bessel_1_even_f64(f64 t) {
    /* P of order 1 for t = 128 / x**2 - 1, x from 8 on. */
    f64 p = -3.5455617466606254e-14;
    p = p * t + 1.0923713653079462e-13;
    p = p * t - 2.6335760672461096e-13;
    p = p * t + 1.0954826479277623e-12;
    p = p * t - 5.191158004646548e-12;
    p = p * t + 2.72345126828134e-11;
    p = p * t - 1.713107485294131e-10;
    p = p * t + 1.3602969253877949e-09;
    p = p * t - 1.4708512991275258e-08;
    p = p * t + 2.453676633366693e-07;
    p = p * t - 7.9596946984383e-06;
    p = p * t + 0.0008988049416705183;
    return p * t + 1.0009070262780821;
}

FUNCTION f32 bessel_1_odd_f32(f32 t) {
    /* Q x / 8 of order 1 for t = 128 / x**2 - 1, x from 8 on. */
    f32 p = -8.38391259e-08f;
    p = p * t + 1.82772305e-06f;
    p = p * t - 9.62143531e-05f;
    return p * t + 0.0467768721f;
}

FUNCTION f64 bessel_1_odd_f64(f64 t) {
    /* Q x / 8 of order 1 for t = 128 / x**2 - 1, x from 8 on. */
    f64 p = 3.620117603894229e-14;
    p = p * t - 1.0515607072587001e-13;
    p = p * t + 2.2462055932168237e-13;
    p = p * t - 8.785014186436455e-13;
    p = p * t + 3.8929927766683146e-12;
    p = p * t - 1.855351813063018e-11;
    p = p * t + 1.0394482901993273e-10;
    p = p * t - 7.1510179969292e-10;
    p = p * t + 6.420133519314915e-09;
    p = p * t - 8.29196082083117e-08;
    p = p * t + 1.8212018511674905e-06;
    p = p * t - 9.621458822050365e-05;
    return p * t + 0.04677687402744898;
}

FUNCTION T bessel_wave_T(T x, T even, T odd, u32 order, u32 second) {
    /* sqrt(2 / (pi x)) (P cos - Q sin), or (P sin + Q cos), of x minus an eighth turn minus order times a
       quarter turn. */
    const T c = cos_T(x), s = sin_T(x), p = even, q = odd * (8.0 / x), scale = 1.0 / SQRT_W(3.1415926535897932 * x);
    const T cosine = order ? s - c : c + s, sine = order ? -(c + s) : s - c;
    return x == INFINITE_W ? 0.0 : scale * (second ? p * sine + q * cosine : p * cosine - q * sine);
}

FUNCTION T bessel_order_0_T(T x, u32 second) {
    const T z = x * x, t = 128.0 / z - 1.0, u = z * 0.03125 - 1.0, first = bessel_j0_near_T(u);
    const T far = bessel_wave_T(x, bessel_0_even_T(t), bessel_0_odd_T(t), 0u, second);
    const T other = bessel_y0_near_T(u) + 0.63661977236758134 * (log_T(x) * first);
    return x > 8.0 ? far : second ? other : first;
}

FUNCTION T bessel_order_1_T(T x, u32 second) {
    const T z = x * x, t = 128.0 / z - 1.0, u = z * 0.03125 - 1.0, first = x * bessel_j1_near_T(u);
    const T far = bessel_wave_T(x, bessel_1_even_T(t), bessel_1_odd_T(t), 1u, second);
    const T other = x * bessel_y1_near_T(u) + 0.63661977236758134 * (log_T(x) * first - 1.0 / x);
    return x > 8.0 ? far : second ? other : first;
}

FUNCTION T j0_T(T x) {
    /* 1 at 0; the fit may exceed it by a unit in the last place. */
    const T value = bessel_order_0_T(abs_T(x), 0u);
    return value > 1.0 ? 1.0 : value;
}

FUNCTION T j1_T(T x) {
    const T value = bessel_order_1_T(abs_T(x), 0u);
    return x == 0.0 ? x : x < 0.0 ? -value : value;
}

FUNCTION T y0_T(T x) {
    return x == 0.0 ? -INFINITE_W : bessel_order_0_T(x, 1u);
}

FUNCTION T y1_T(T x) {
    return x == 0.0 ? -INFINITE_W : bessel_order_1_T(x, 1u);
}
