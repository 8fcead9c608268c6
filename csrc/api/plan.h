// Which plan a GEMM of a given shape runs. The plans themselves are data: sm90/decode_gemm/plans.h.
#pragma once

#include "sm90/decode_gemm/plans.h"

namespace fish::sm90 {

// A function of the weight's shape alone.
Split split_for(int rows, int columns);

Plan fp8_plan(int rows, int columns, int tokens);
Plan w8a16_plan(int rows, int columns, int tokens);
Plan gate_up_plan(int rows, int columns, int tokens);

}  // namespace fish::sm90
