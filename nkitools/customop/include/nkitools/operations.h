// Tensor Operation Functions (custom-ops-ref-guide): element by element, without broadcasting. `f_out` writes into its
// first argument, `f` makes a new tensor.
#pragma once

#include "nkitools/tensor.h"

namespace torch {
inline namespace nkt_host {

Tensor& abs_out(Tensor& result, const Tensor& self);
Tensor abs(const Tensor& self);
Tensor& ceil_out(Tensor& result, const Tensor& self);
Tensor ceil(const Tensor& self);
Tensor& floor_out(Tensor& result, const Tensor& self);
Tensor floor(const Tensor& self);
Tensor& sin_out(Tensor& result, const Tensor& self);
Tensor sin(const Tensor& self);
Tensor& cos_out(Tensor& result, const Tensor& self);
Tensor cos(const Tensor& self);
Tensor& tan_out(Tensor& result, const Tensor& self);
Tensor tan(const Tensor& self);
Tensor& log_out(Tensor& result, const Tensor& self);
Tensor log(const Tensor& self);
Tensor& log2_out(Tensor& result, const Tensor& self);
Tensor log2(const Tensor& self);
Tensor& log10_out(Tensor& result, const Tensor& self);
Tensor log10(const Tensor& self);
Tensor& exp_out(Tensor& result, const Tensor& self);
Tensor exp(const Tensor& self);
Tensor& bitwise_not_out(Tensor& result, const Tensor& self);
// The guide lists this form with a `result` that every other one lacks.
Tensor bitwise_not(const Tensor& self);

Tensor& clamp_out(Tensor& result, const Tensor& self, const Scalar& minval, const Scalar& maxval);
Tensor clamp(const Tensor& self, const Scalar& minval, const Scalar& maxval);

Tensor& add_out(Tensor& result, const Tensor& self, const Scalar& other, const Scalar& alpha = 1);
Tensor add(const Tensor& self, const Scalar& other, const Scalar& alpha = 1);
Tensor& add_out(Tensor& result, const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
Tensor add(const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
Tensor& sub_out(Tensor& result, const Tensor& self, const Scalar& other, const Scalar& alpha = 1);
Tensor sub(const Tensor& self, const Scalar& other, const Scalar& alpha = 1);
Tensor& sub_out(Tensor& result, const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
Tensor sub(const Tensor& self, const Tensor& other, const Scalar& alpha = 1);

Tensor& mul_out(Tensor& result, const Tensor& self, const Scalar& other);
Tensor mul(const Tensor& self, const Scalar& other);
Tensor& mul_out(Tensor& result, const Tensor& self, const Tensor& other);
Tensor mul(const Tensor& self, const Tensor& other);
Tensor& div_out(Tensor& result, const Tensor& self, const Scalar& other);
Tensor div(const Tensor& self, const Scalar& other);
Tensor& div_out(Tensor& result, const Tensor& self, const Tensor& other);
Tensor div(const Tensor& self, const Tensor& other);

Tensor& pow_out(Tensor& result, const Tensor& self, const Scalar& exponent);
Tensor pow(const Tensor& self, const Scalar& exponent);
Tensor& pow_out(Tensor& result, const Scalar& self, const Tensor& exponent);
Tensor pow(const Scalar& self, const Tensor& exponent);
Tensor& pow_out(Tensor& result, const Tensor& self, const Tensor& exponent);
Tensor pow(const Tensor& self, const Tensor& exponent);
Tensor& bitwise_and_out(Tensor& result, const Tensor& self, const Scalar& other);
Tensor bitwise_and(const Tensor& self, const Scalar& other);
Tensor& bitwise_and_out(Tensor& result, const Scalar& self, const Tensor& other);
Tensor bitwise_and(const Scalar& self, const Tensor& other);
Tensor& bitwise_and_out(Tensor& result, const Tensor& self, const Tensor& other);
Tensor bitwise_and(const Tensor& self, const Tensor& other);
Tensor& bitwise_or_out(Tensor& result, const Tensor& self, const Scalar& other);
Tensor bitwise_or(const Tensor& self, const Scalar& other);
Tensor& bitwise_or_out(Tensor& result, const Scalar& self, const Tensor& other);
Tensor bitwise_or(const Scalar& self, const Tensor& other);
Tensor& bitwise_or_out(Tensor& result, const Tensor& self, const Tensor& other);
Tensor bitwise_or(const Tensor& self, const Tensor& other);

}  // namespace nkt_host
}  // namespace torch
