// Which variants exist and when each runs: data. A row here is what gets compiled, and what gets launched.
//
// Measured on an H200; notes/fp8_gemm_blockscaled.md has the ladder.
#pragma once

#include "config.h"

namespace fish::sm90 {

// How K is cut, and with it the order of every sum. A function of the weight's shape alone, so that a token's result
// does not depend on how many tokens share the batch: every split has a plan for every token tile.
struct Split {
  int warpgroups_along_k;
  int ctas_along_k;
};

struct Entry {
  int up_to_tokens;
  Plan plan;
};

constexpr int kAnyTokens = 1 << 30;

constexpr Split kWide{1, 1};    // the tiles alone fill the chip (gate_up)
constexpr Split kMiddle{2, 1};  // about one tile a multiprocessor (qkv)
constexpr Split kNarrow{2, 2};  // few tiles (o)
constexpr Split kDeep{1, 4};    // few tiles and a long K (down)

// Of the entries of a split, the first runs that takes the tokens, whose tiles divide the weight's rows (64 always do)
// and whose shared memory suffices (scales take more of it the longer K is).
//  up to tokens, {token tile, warpgroups along K, weight rows, stages, CTAs along K, CTAs along rows, trigger}
constexpr Entry kFp8Plans[] = {
    {8, {8, 1, 64, 7, 1, 1, kTriggerAtStart}},  // kWide
    {16, {16, 1, 64, 7, 1, 1, kTriggerAtStart}},
    {32, {32, 1, 152, 6, 1, 1, 2}},  // activations are read once for 152 rows instead of 64
    {32, {32, 1, 64, 5, 1, 1, 5}},
    {64, {64, 1, 152, 5, 1, 1, kTriggerAtStart}},
    {64, {64, 1, 64, 4, 1, 1, 0}},
    {kAnyTokens, {64, 1, 128, 4, 1, 1, 0}},
    {kAnyTokens, {64, 1, 64, 4, 1, 1, 0}},
    {8, {8, 2, 64, 8, 1, 1, 5}},  // kMiddle
    {16, {16, 2, 64, 8, 1, 1, kTriggerAtStart}},
    {32, {32, 2, 64, 8, 1, 1, kTriggerAtStart}},
    {64, {64, 2, 64, 4, 1, 1, 0}},
    {kAnyTokens, {128, 2, 64, 4, 1, 1, 0}},
    {kAnyTokens, {64, 2, 64, 4, 1, 1, 0}},
    {8, {8, 2, 64, 8, 2, 1, kTriggerAtStart}},  // kNarrow
    {16, {16, 2, 64, 8, 2, 1, kTriggerAtStart}},
    {32, {32, 2, 64, 8, 2, 1, 0}},
    {64, {64, 2, 64, 4, 2, 1, 2}},
    {kAnyTokens, {128, 2, 64, 3, 2, 1, 0}},
    {kAnyTokens, {64, 2, 64, 4, 2, 1, 2}},
    {8, {8, 1, 64, 8, 4, 1, 5}},  // kDeep
    {16, {16, 1, 64, 8, 4, 1, 5}},
    {32, {32, 1, 64, 8, 4, 1, 5}},
    {64, {64, 1, 64, 5, 4, 1, 2}},
    {kAnyTokens, {128, 1, 128, 4, 4, 1, 0}},
    {kAnyTokens, {64, 1, 64, 5, 4, 1, 0}},
};

constexpr Entry kW8a16Plans[] = {
    {8, {8, 1, 64, 7, 1, 1, 5}},
    {16, {16, 1, 64, 6, 1, 1, 5}},
    {32, {32, 1, 64, 4, 1, 1, 5}},
    {kAnyTokens, {64, 1, 64, 3, 1, 1, kTriggerAtStart}},
    {8, {8, 2, 64, 8, 1, 1, 2}},
    {16, {16, 2, 64, 8, 1, 1, 2}},
    {32, {32, 2, 64, 6, 1, 1, 2}},
    {kAnyTokens, {64, 2, 64, 4, 1, 1, 2}},
    {8, {8, 2, 64, 8, 2, 1, 5}},
    {16, {16, 2, 64, 8, 2, 1, 5}},
    {32, {32, 2, 64, 6, 2, 1, kTriggerAtStart}},
    {kAnyTokens, {64, 2, 64, 4, 2, 1, 2}},
    {8, {8, 1, 64, 8, 4, 1, 5}},
    {16, {16, 1, 64, 8, 4, 1, 5}},
    {32, {32, 1, 64, 6, 4, 1, 5}},
    {kAnyTokens, {64, 1, 64, 3, 4, 1, 2}},
};

// A cluster of four shares the scale of 128 columns.
constexpr Entry kGateUpPlans[] = {
    {8, {8, 1, 64, 7, 1, 4, kTriggerAtStart}},
    {16, {16, 1, 64, 6, 1, 4, kTriggerAtStart}},
    {32, {32, 1, 64, 5, 1, 4, 5}},
    {64, {64, 1, 64, 3, 1, 4, 2}},
    {kAnyTokens, {128, 1, 64, 3, 1, 4, kTriggerAtStart}},
};

}  // namespace fish::sm90
