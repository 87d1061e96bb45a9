/* Modified Bessel functions of the first kind, of orders 0 and 1. Up to 8 a minimax fit replaces the power series, above
   8 another one replaces the asymptotic expansion (NIST Digital Library of Mathematical Functions, 10.25 and 10.40). The
   fits are our own. */

FUNCTION f32 bessel_i0_near_f32(f32 t) {
    /* (I0(2 sqrt(t)) - 1) / t for t up to 16. */
    f32 p = 1.46166933e-13f;
    p = p * t + 4.95525366e-12f;
    p = p * t + 6.67298938e-10f;
    p = p * t + 3.87562373e-08f;
    p = p * t + 1.93340225e-06f;
    p = p * t + 6.94253613e-05f;
    p = p * t + 0.00173615862f;
    p = p * t + 0.0277777184f;
    p = p * t + 0.25000003f;
    return p * t + 1.0f;
}

FUNCTION f64 bessel_i0_near_f64(f64 t) {
    /* (I0(2 sqrt(t)) - 1) / t for t up to 16. */
    f64 p = 9.320957982657394e-25;
    p = p * t + 1.1140578626577648e-22;
    p = p * t + 2.6460556344031166e-20;
    p = p * t + 4.343826738538556e-18;
    p = p * t + 6.278265696233405e-16;
    p = p * t + 7.593825457868694e-14;
    p = p * t + 7.594076278142541e-12;
    p = p * t + 6.151186347213467e-10;
    p = p * t + 3.9367599270566226e-08;
    p = p * t + 1.9290123446740302e-06;
    p = p * t + 6.94444444461813e-05;
    p = p * t + 0.0017361111111093047;
    p = p * t + 0.02777777777777876;
    p = p * t + 0.24999999999999978;
    return p * t + 1.0;
}

FUNCTION f32 bessel_i1_near_f32(f32 t) {
    /* (I1(2 sqrt(t)) / sqrt(t) - 1) / t for t up to 16. */
    f32 p = 1.45417185e-12f;
    p = p * t + 4.53146236e-11f;
    p = p * t + 5.31235234e-09f;
    p = p * t + 2.71772194e-07f;
    p = p * t + 1.15955463e-05f;
    p = p * t + 0.000347154477f;
    p = p * t + 0.00694455113f;
    p = p * t + 0.0833332688f;
    return p * t + 0.5f;
}

FUNCTION f64 bessel_i1_near_f64(f64 t) {
    /* (I1(2 sqrt(t)) / sqrt(t) - 1) / t for t up to 16. */
    f64 p = 5.670623427712736e-26;
    p = p * t + 7.605583976506685e-24;
    p = p * t + 1.8808297774933083e-21;
    p = p * t + 3.344212859287525e-19;
    p = p * t + 5.23132598350008e-17;
    p = p * t + 6.90355536051477e-15;
    p = p * t + 7.594068700101541e-13;
    p = p * t + 6.834652021789808e-11;
    p = p * t + 4.920949883232588e-09;
    p = p * t + 2.755731921820714e-07;
    p = p * t + 1.1574074074173927e-05;
    p = p * t + 0.00034722222222211837;
    p = p * t + 0.006944444444444501;
    p = p * t + 0.08333333333333331;
    return p * t + 0.5;
}

FUNCTION f32 bessel_i0_far_f32(f32 t) {
    /* sqrt(x) exp(-x) I0(x) for x = 16 / (1 + t) from 8 on. */
    f32 p = 3.62667038e-07f;
    p = p * t + 1.63913489e-06f;
    p = p * t + 1.11121481e-05f;
    p = p * t + 0.000136156028f;
    p = p * t + 0.00336055574f;
    return p * t + 0.402176499f;
}

FUNCTION f64 bessel_i0_far_f64(f64 t) {
    /* sqrt(x) exp(-x) I0(x) for x = 16 / (1 + t) from 8 on. */
    f64 p = 9.365086892818186e-11;
    p = p * t + 3.629355229718729e-11;
    p = p * t - 6.633287112547082e-10;
    p = p * t - 2.803381997886998e-10;
    p = p * t + 2.1968921378828997e-09;
    p = p * t + 1.1050558794424341e-09;
    p = p * t - 4.5755534245349725e-09;
    p = p * t - 3.1346276429240783e-09;
    p = p * t + 6.5601387469170566e-09;
    p = p * t + 7.3359687108161536e-09;
    p = p * t - 5.038106487903284e-09;
    p = p * t - 1.3326094405766387e-08;
    p = p * t - 6.84933818828677e-09;
    p = p * t + 7.534355843803342e-09;
    p = p * t + 2.1566251453104354e-08;
    p = p * t + 3.932889375114634e-08;
    p = p * t + 8.872034383314144e-08;
    p = p * t + 2.973596046562712e-07;
    p = p * t + 1.4838476651250266e-06;
    p = p * t + 1.1143033800708978e-05;
    p = p * t + 0.00013621607438984735;
    p = p * t + 0.0033605519836677504;
    return p * t + 0.4021765094450081;
}

FUNCTION f32 bessel_i1_far_f32(f32 t) {
    /* sqrt(x) exp(-x) I1(x) for x = 16 / (1 + t) from 8 on. */
    f32 p = -4.21035026e-07f;
    p = p * t - 2.00978889e-06f;
    p = p * t - 1.5003965e-05f;
    p = p * t - 0.000219168083f;
    p = p * t - 0.00974958111f;
    return p * t + 0.389398456f;
}

FUNCTION f64 bessel_i1_far_f64(f64 t) {
    /* sqrt(x) exp(-x) I1(x) for x = 16 / (1 + t) from 8 on. */
    f64 p = 1.8515118828852277e-11;
    p = p * t - 9.752397204138192e-11;
    p = p * t - 1.4011625179770232e-10;
    p = p * t + 6.917089294193805e-10;
    p = p * t + 5.295625441161161e-10;
    p = p * t - 2.2970041618852e-09;
    p = p * t - 1.438725053304087e-09;
    p = p * t + 4.810597405089943e-09;
    p = p * t + 3.426234149007783e-09;
    p = p * t - 6.983839624895865e-09;
    p = p * t - 7.642394134363554e-09;
    p = p * t + 5.59337010179061e-09;
    p = p * t + 1.4034238782067181e-08;
    p = p * t + 6.8401389977069586e-09;
    p = p * t - 8.427766093735183e-09;
    p = p * t - 2.339250374801858e-08;
    p = p * t - 4.312917729178349e-08;
    p = p * t - 1.000109565963654e-07;
    p = p * t - 3.483855761044295e-07;
    p = p * t - 1.8349102358955385e-06;
    p = p * t - 1.5038547200567216e-05;
    p = p * t - 0.0002192357638317243;
    p = p * t - 0.009749577193235737;
    return p * t + 0.38939845902587233;
}

FUNCTION T bessel_i0_small_T(T a) {
    const T z = 0.25 * a * a;
    return 1.0 + z * bessel_i0_near_T(z);
}

FUNCTION T bessel_i1_small_T(T a) {
    /* The added term is small where derivatives divide by the argument, which saves one rounding error. */
    const T z = 0.25 * a * a, half_way = 0.5 * a;
    return half_way + half_way * (z * bessel_i1_near_T(z));
}

/* The scaled functions near 0, where derivatives divide their rounding errors by the argument. The term that is
   added to 1, or to half of the argument, is so small that its rounding errors do not matter (Kummer's series,
   10.39.5). */

FUNCTION T bessel_i0e_least_T(T a) {
    T q = -0.0053199404761904762;
    q = q * a + 0.020052083333333333;
    q = q * a - 0.065625;
    q = q * a + 0.18229166666666667;
    q = q * a - 0.41666666666666667;
    q = q * a + 0.75;
    return 1.0 + a * (q * a - 1.0);
}

FUNCTION T bessel_i1e_least_T(T a) {
    T q = -0.0022166418650793651;
    q = q * a + 0.0093098958333333333;
    q = q * a - 0.034375;
    q = q * a + 0.109375;
    q = q * a - 0.29166666666666667;
    q = q * a + 0.625;
    const T half_way = 0.5 * a;
    return half_way + half_way * (a * (q * a - 1.0));
}

FUNCTION T i0e_T(T x) {
    const T a = abs_T(x);
    const T near = a < 0.015625 ? bessel_i0e_least_T(a) : bessel_i0_small_T(a) * exp_T(-a);
    return a > 8.0 ? bessel_i0_far_T(16.0 / a - 1.0) / SQRT_W(a) : near;
}

FUNCTION T i0_T(T x) {
    const T a = abs_T(x), half_way = exp_T(0.5 * a);
    const T far = bessel_i0_far_T(16.0 / a - 1.0) / SQRT_W(a) * half_way * half_way;
    return a == INFINITE_W ? a : a > 8.0 ? far : bessel_i0_small_T(a);
}

FUNCTION T i1e_T(T x) {
    const T a = abs_T(x);
    const T near = a < 0.015625 ? bessel_i1e_least_T(a) : bessel_i1_small_T(a) * exp_T(-a);
    const T value = a > 8.0 ? bessel_i1_far_T(16.0 / a - 1.0) / SQRT_W(a) : near;
    return a != a ? a : x == 0.0 ? x : x < 0.0 ? -value : value;
}

FUNCTION T i1_T(T x) {
    const T a = abs_T(x), half_way = exp_T(0.5 * a);
    const T far = bessel_i1_far_T(16.0 / a - 1.0) / SQRT_W(a) * half_way * half_way;
    const T value = a == INFINITE_W ? a : a > 8.0 ? far : bessel_i1_small_T(a);
    return a != a ? a : x == 0.0 ? x : x < 0.0 ? -value : value;
}
