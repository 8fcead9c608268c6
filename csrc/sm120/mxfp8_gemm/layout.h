// Who holds what in the MXFP8 GEMM: every index that the kernel uses, as plain functions. The kernel (on a GPU) and
// emulate.cpp (on a CPU, without any GPU) call the same ones, so that a test of the emulation is a test of the layout.
//
// D[token][row] = Σ_k weights[row][k] · tokens[token][k]; weights are the 16-row operand of the mma, tokens the
// 8-column one.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define FISH_LAYOUT __host__ __device__ constexpr
#else
#define FISH_LAYOUT constexpr
#endif

namespace fish::sm120 {

constexpr int kRows = 64;           // weight rows of a CTA
constexpr int kBlockColumns = 128;  // columns of K in a stage: four steps of the mma, one scale word
constexpr int kStepColumns = 32;
constexpr int kSteps = kBlockColumns / kStepColumns;
constexpr int kWarps = 4;  // each 16 rows
constexpr int kMmaRows = 16;
constexpr int kMmaTokens = 8;
constexpr int kThreads = kWarps * 32;
constexpr int kChunk = 16;  // bytes of one asynchronous copy

// Byte of a tile in shared memory: 16-byte chunks of a 128-byte row are permuted by the row, so that the eight rows
// that a warp reads at once fall into different banks.
FISH_LAYOUT int shared_offset(int row, int column) {
  const int chunk = column / kChunk;
  return row * kBlockColumns + ((chunk ^ (row % 8)) * kChunk) + column % kChunk;
}

// The register `index` of a lane's weights holds columns [.., +4) of one row.
FISH_LAYOUT int weight_row(int lane, int index) { return lane / 4 + index % 2 * 8; }
FISH_LAYOUT int weight_column(int lane, int index) { return lane % 4 * 4 + index / 2 * 16; }

// The register `index` of a lane's tokens holds columns [.., +4) of one token.
FISH_LAYOUT int token_of(int lane) { return lane / 4; }
FISH_LAYOUT int token_column(int lane, int index) { return lane % 4 * 4 + index * 16; }

// The accumulator `index` of a lane.
FISH_LAYOUT int output_row(int lane, int index) { return lane / 4 + index / 2 * 8; }
FISH_LAYOUT int output_token(int lane, int index) { return lane % 4 * 2 + index % 2; }

// The row, and the token, whose scale word a lane hands to the mma. Selector 0 makes the hardware take a weight row's
// scale from lanes 4r (rows 0-7) and 4r + 1 (rows 8-15), and a token's from lane 4t; the other lanes hold copies.
FISH_LAYOUT int weight_scale_row(int lane) { return lane / 4 + lane % 2 * 8; }
FISH_LAYOUT int token_scale_token(int lane) { return lane / 4; }

// The word that holds the four scales of a block of 128 columns; step s of the mma takes its byte s.
FISH_LAYOUT int64_t scale_word(int block, int row, int pitch) { return static_cast<int64_t>(block) * pitch + row; }

FISH_LAYOUT int padded_to_4(int count) { return (count + 3) / 4 * 4; }

}  // namespace fish::sm120
