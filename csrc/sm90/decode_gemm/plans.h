// Which variants exist and when each runs: data. A row here is what gets compiled, and what gets launched.
//
// Measured on an H200; notes/fp8_gemm_blockscaled.md has the ladder.
#pragma once

#include "config.h"

namespace fish::sm90 {

// How K is cut, and with it the order of every sum. A function of the weight's shape alone, so that a token's result does not
// depend on how many tokens share the batch: every split has a plan for every token tile.
struct Split {
  int warpgroups_along_k;
  int cluster;
};

constexpr Split kWide{1, 1};    // the tiles alone fill the chip (gate_up)
constexpr Split kMiddle{2, 1};  // about one tile a multiprocessor (qkv)
constexpr Split kNarrow{2, 2};  // few tiles (o)
constexpr Split kDeep{1, 4};    // few tiles and a long K (down)

//  tokens, warpgroups along K, weight rows, stages, cluster, trigger
constexpr Plan kFp8Plans[] = {
    {8, 1, 64, 7, 1, kTriggerAtStart},   {8, 2, 64, 8, 1, 5},   {8, 2, 64, 8, 2, kTriggerAtStart},  {8, 1, 64, 8, 4, 5},
    {16, 1, 64, 7, 1, kTriggerAtStart},  {16, 2, 64, 8, 1, 5},  {16, 2, 64, 8, 2, kTriggerAtStart}, {16, 1, 64, 8, 4, 5},
    {32, 1, 64, 5, 1, 5},                {32, 2, 64, 8, 1, 5},  {32, 2, 64, 8, 2, 0},               {32, 1, 64, 8, 4, 5},
    {64, 1, 64, 4, 1, 0},                {64, 2, 64, 4, 1, 0},  {64, 2, 64, 4, 2, 2},               {64, 1, 64, 5, 4, 0},
    {128, 1, 128, 3, 1, 0},              {128, 2, 64, 4, 1, 0}, {128, 2, 64, 3, 2, 0},              {128, 1, 128, 4, 4, 0},
};

// From 32 tokens on, reading the activations once for 152 rows instead of 64 outweighs the coarser tiles, where 152 divides N.
constexpr Plan kFp8TallPlans[] = {
    {32, 1, 152, 6, 1, 2},
    {64, 1, 152, 5, 1, 2},
};

constexpr Plan kW8a16Plans[] = {
    {8, 1, 64, 7, 1, kTriggerAtStart},  {8, 2, 64, 8, 1, 5},  {8, 2, 64, 8, 2, kTriggerAtStart},  {8, 1, 64, 8, 4, 5},
    {16, 1, 64, 6, 1, kTriggerAtStart}, {16, 2, 64, 8, 1, 5}, {16, 2, 64, 8, 2, kTriggerAtStart}, {16, 1, 64, 8, 4, 5},
    {32, 1, 64, 4, 1, 5},               {32, 2, 64, 6, 1, 5}, {32, 2, 64, 6, 2, 0},               {32, 1, 64, 6, 4, 5},
    {64, 1, 64, 3, 1, 0},               {64, 2, 64, 4, 1, 0}, {64, 2, 64, 4, 2, 2},               {64, 1, 64, 3, 4, 0},
};

// A cluster of four shares the scale of 128 columns; K is not cut.
constexpr Plan kGateUpPlans[] = {
    {8, 1, 64, 7, 4, kTriggerAtStart}, {16, 1, 64, 6, 4, kTriggerAtStart}, {32, 1, 64, 5, 4, kTriggerAtStart},
    {64, 1, 64, 4, 4, kTriggerAtStart}, {128, 1, 64, 3, 4, kTriggerAtStart},
};

}  // namespace fish::sm90
