// The cores of the GpSimd Engine, and its tightly-coupled memory.
#pragma once

#include "nkitools/tcm.h"
