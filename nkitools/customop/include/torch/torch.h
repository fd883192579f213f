// The tensor library of Neuron custom C++ operators, as far as Neuron's reference guide documents it, for the host.
// What is not in the guide is not here: it does not compile.
#pragma once

// What torch's own headers bring along, and sources have come to rely on.
#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "nkitools/operations.h"
#include "nkitools/tcm.h"
#include "nkitools/tensor.h"

// The same names as ATen and c10 have them, to which torch's own point: at::Tensor is torch::Tensor.
namespace at {
using namespace c10;
using namespace torch;
}  // namespace at
