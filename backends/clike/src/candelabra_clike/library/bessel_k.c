/* Modified Bessel functions of the second kind, of orders 0 and 1. Up to 1.25 a logarithm times the function of the
   first kind, plus a power series; above it the asymptotic expansion (NIST Digital Library of Mathematical
   Functions, 10.31 and 10.40). The minimax fits are our own. */

FUNCTION f32 bessel_k0_near_f32(f32 t) {
    /* K0(2 sqrt(t)) + log(sqrt(t)) I0(2 sqrt(t)) for t up to 0.4. */
    f32 p = 0.00273279217f;
    p = p * t + 0.0348515585f;
    p = p * t + 0.230701759f;
    p = p * t + 0.42278406f;
    return p * t - 0.577215672f;
}

FUNCTION f64 bessel_k0_near_f64(f64 t) {
    /* K0(2 sqrt(t)) + log(sqrt(t)) I0(2 sqrt(t)) for t up to 0.4. */
    f64 p = 1.347132980013571e-09;
    p = p * t + 7.932863126620152e-08;
    p = p * t + 3.612632940127059e-06;
    p = p * t + 0.00011848039160474282;
    p = p * t + 0.0026147876190807545;
    p = p * t + 0.03489215745641796;
    p = p * t + 0.2306960837746176;
    p = p * t + 0.42278433509846713;
    return p * t - 0.5772156649015329;
}

FUNCTION f32 bessel_k1_near_f32(f32 t) {
    /* (1 / x + log(x / 2) I1(x) - K1(x)) / (x / 2) for t = (x / 2)**2 up to 0.4. */
    f32 p = 0.000578246312f;
    p = p * t + 0.00958402641f;
    p = p * t + 0.090788573f;
    p = p * t + 0.336392105f;
    return p * t - 0.0772156641f;
}

FUNCTION f64 bessel_k1_near_f64(f64 t) {
    /* (1 / x + log(x / 2) I1(x) - K1(x)) / (x / 2) for t = (x / 2)**2 up to 0.4. */
    f64 p = 1.5320520564300854e-10;
    p = p * t + 1.0224150092801336e-08;
    p = p * t + 5.357738589989411e-07;
    p = p * t + 2.071123823853313e-05;
    p = p * t + 0.0005576797460113833;
    p = p * t + 0.009591094919663144;
    p = p * t + 0.0907875834804279;
    p = p * t + 0.33639216754923357;
    return p * t - 0.07721566490153287;
}

FUNCTION f32 bessel_k0_far_f32(f32 t) {
    /* sqrt(x) exp(x) K0(x) for x = 2.5 / (1 + t) from 1.25 on. */
    f32 p = -5.23742847e-06f;
    p = p * t + 1.06199223e-05f;
    p = p * t - 1.11980989e-05f;
    p = p * t + 3.25573383e-05f;
    p = p * t - 0.000107443295f;
    p = p * t + 0.000338929123f;
    p = p * t - 0.00125767989f;
    p = p * t + 0.0059945737f;
    p = p * t - 0.0446039587f;
    return p * t + 1.20095193f;
}

FUNCTION f64 bessel_k0_far_f64(f64 t) {
    /* sqrt(x) exp(x) K0(x) for x = 2.5 / (1 + t) from 1.25 on. */
    f64 p = -3.796566153556404e-09;
    p = p * t + 4.832549208985294e-09;
    p = p * t + 1.9397261808320483e-08;
    p = p * t - 2.327316680090802e-08;
    p = p * t - 4.872916016255126e-08;
    p = p * t + 5.598168915164132e-08;
    p = p * t + 7.018784868025785e-08;
    p = p * t - 7.520764317727647e-08;
    p = p * t - 7.377316155883867e-08;
    p = p * t + 7.789612092536711e-08;
    p = p * t + 3.546993112239774e-08;
    p = p * t - 2.3783043374726865e-08;
    p = p * t - 6.083898905041779e-08;
    p = p * t + 9.185754717056975e-08;
    p = p * t - 1.3162865098648262e-07;
    p = p * t + 2.6828747223357724e-07;
    p = p * t - 5.590712880144541e-07;
    p = p * t + 1.1745669209244615e-06;
    p = p * t - 2.5707494270231757e-06;
    p = p * t + 5.9042292428166585e-06;
    p = p * t - 1.4343564420235226e-05;
    p = p * t + 3.7326534474616225e-05;
    p = p * t - 0.00010594633247293877;
    p = p * t + 0.0003370952759233659;
    p = p * t - 0.001257961444790036;
    p = p * t + 0.005994813497658943;
    p = p * t - 0.04460394412851985;
    return p * t + 1.20095192761735;
}

FUNCTION f32 bessel_k1_far_f32(f32 t) {
    /* sqrt(x) exp(x) K1(x) for x = 2.5 / (1 + t) from 1.25 on. */
    f32 p = 6.3399857e-06f;
    p = p * t - 1.30833596e-05f;
    p = p * t + 1.46807124e-05f;
    p = p * t - 4.35670008e-05f;
    p = p * t + 0.000147204977f;
    p = p * t - 0.000492014689f;
    p = p * t + 0.00200517196f;
    p = p * t - 0.0114861559f;
    p = p * t + 0.155778363f;
    return p * t + 1.42330074f;
}

FUNCTION f64 bessel_k1_far_f64(f64 t) {
    /* sqrt(x) exp(x) K1(x) for x = 2.5 / (1 + t) from 1.25 on. */
    f64 p = 4.139595683689063e-09;
    p = p * t - 5.281470319773121e-09;
    p = p * t - 2.111703607342544e-08;
    p = p * t + 2.5389109766622814e-08;
    p = p * t + 5.3049325113257115e-08;
    p = p * t - 6.108341841263619e-08;
    p = p * t - 7.630314555484122e-08;
    p = p * t + 8.18940712983127e-08;
    p = p * t + 8.043010329378859e-08;
    p = p * t - 8.525304142562227e-08;
    p = p * t - 3.784464575032717e-08;
    p = p * t + 2.452850400969717e-08;
    p = p * t + 6.904885262519531e-08;
    p = p * t - 1.0592855244239342e-07;
    p = p * t + 1.5591471460003282e-07;
    p = p * t - 3.197784766976711e-07;
    p = p * t + 6.717444814124634e-07;
    p = p * t - 1.4284832111057545e-06;
    p = p * t + 3.1718000741032223e-06;
    p = p * t - 7.412753312643459e-06;
    p = p * t + 1.8406926752806796e-05;
    p = p * t - 4.928472549070673e-05;
    p = p * t + 0.00014543421537439213;
    p = p * t - 0.0004898194734353745;
    p = p * t + 0.0020055047387826904;
    p = p * t - 0.01148644241740731;
    p = p * t + 0.1557783480645508;
    return p * t + 1.4233007354894118;
}

FUNCTION T bessel_k0_small_T(T x) {
    return bessel_k0_near_T(0.25 * x * x) - (log_T(x) - 0.6931471805599453) * bessel_i0_small_T(x);
}

FUNCTION T bessel_k1_small_T(T x) {
    const T rest = (log_T(x) - 0.6931471805599453) * bessel_i1_small_T(x) - 0.5 * x * bessel_k1_near_T(0.25 * x * x);
    return x == 0.0 ? INFINITE_W : 1.0 / x + rest;
}

FUNCTION T k0_T(T x) {
    return x > 1.25 ? bessel_k0_far_T(2.5 / x - 1.0) / SQRT_W(x) * exp_T(-x) : bessel_k0_small_T(x);
}

FUNCTION T k0e_T(T x) {
    return x > 1.25 ? bessel_k0_far_T(2.5 / x - 1.0) / SQRT_W(x) : bessel_k0_small_T(x) * exp_T(x);
}

FUNCTION T k1_T(T x) {
    return x > 1.25 ? bessel_k1_far_T(2.5 / x - 1.0) / SQRT_W(x) * exp_T(-x) : bessel_k1_small_T(x);
}

FUNCTION T k1e_T(T x) {
    return x > 1.25 ? bessel_k1_far_T(2.5 / x - 1.0) / SQRT_W(x) : bessel_k1_small_T(x) * exp_T(x);
}
