// The MXFP8 GEMM on a CPU: the kernel's indices (layout.h), and a model of the mma written from the PTX manual. Built
// by the unit tests with any C++ compiler; a wrong index shows without a Blackwell GPU at hand.
#include <cmath>
#include <cstring>
#include <vector>

#include "layout.h"

namespace fish::sm120 {
namespace {

float from_e4m3(uint8_t bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  if (exponent == 15 && mantissa == 7) return NAN;
  const float magnitude = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return bits & 128 ? -magnitude : magnitude;
}

float from_ue8m0(uint8_t bits) { return std::ldexp(1.0f, bits - 127); }

uint8_t byte_of(uint32_t word, int index) { return word >> 8 * index & 255; }

// What 32 lanes hand to mma.m16n8k32 … scale_vec::1X with selector 0, and what it leaves in them. Written from the
// manual's figures and deliberately not with layout.h: row and column of a register are restated as the hardware
// defines them.
struct Mma {
  uint32_t weights[32][4], tokens[32][2], weight_scales[32], token_scales[32];

  float weight(int row, int column) const {
    const int lane = row % 8 * 4 + column % 16 / 4, index = row / 8 + column / 16 * 2;
    return from_e4m3(byte_of(weights[lane][index], column % 4));
  }
  float token(int which, int column) const {
    return from_e4m3(byte_of(tokens[which * 4 + column % 16 / 4][column / 16], column % 4));
  }
  void run(float (&d)[32][4], int byte) const {
    for (int row = 0; row < kMmaRows; ++row) {
      for (int which = 0; which < kMmaTokens; ++which) {
        double sum = 0;
        for (int column = 0; column < kStepColumns; ++column) sum += weight(row, column) * token(which, column);
        sum *= from_ue8m0(byte_of(weight_scales[row % 8 * 4 + row / 8], byte));
        sum *= from_ue8m0(byte_of(token_scales[which * 4], byte));
        d[row % 8 * 4 + which / 2][row / 8 * 2 + which % 2] += static_cast<float>(sum);
      }
    }
  }
};

struct Operands {
  const uint8_t *tokens, *weights;
  const uint32_t *token_scales, *weight_scales;
  int token_count, rows, columns;
};

// A tile as the kernel's copies leave it in shared memory; rows past the end are zeros.
std::vector<uint8_t> tile_of(const uint8_t* source, int first, int count, int limit, int block, int columns) {
  std::vector<uint8_t> shared(count * kBlockColumns, 0);
  for (int row = 0; row < count; ++row) {
    for (int column = 0; column < kBlockColumns && first + row < limit; column += kChunk) {
      std::memcpy(&shared[shared_offset(row, column)],
                  source + static_cast<size_t>(first + row) * columns + block * kBlockColumns + column, kChunk);
    }
  }
  return shared;
}

uint32_t word_at(const std::vector<uint8_t>& shared, int row, int column) {
  uint32_t word;
  std::memcpy(&word, &shared[shared_offset(row, column)], 4);
  return word;
}

// One warp's 16 rows by 8 tokens, as the kernel walks them.
void run_warp(const Operands& operands, int first_row, int warp, int first_token, float (&sums)[32][4]) {
  const int weight_pitch = padded_to_4(operands.rows), token_pitch = padded_to_4(operands.token_count);
  for (int block = 0; block < operands.columns / kBlockColumns; ++block) {
    const auto weights = tile_of(operands.weights, first_row, kRows, operands.rows, block, operands.columns);
    const auto tokens =
        tile_of(operands.tokens, first_token, kMmaTokens, operands.token_count, block, operands.columns);
    for (int step = 0; step < kSteps; ++step) {
      Mma mma;
      for (int lane = 0; lane < 32; ++lane) {
        for (int i = 0; i < 4; ++i) {
          mma.weights[lane][i] =
              word_at(weights, warp * kMmaRows + weight_row(lane, i), step * kStepColumns + weight_column(lane, i));
        }
        for (int i = 0; i < 2; ++i) {
          mma.tokens[lane][i] = word_at(tokens, token_of(lane), step * kStepColumns + token_column(lane, i));
        }
        const int row = first_row + warp * kMmaRows + weight_scale_row(lane);
        const int token = first_token + token_scale_token(lane);
        mma.weight_scales[lane] = operands.weight_scales[scale_word(block, row, weight_pitch)];
        mma.token_scales[lane] =
            operands.token_scales[scale_word(block, token < token_pitch ? token : token_pitch - 1, token_pitch)];
      }
      mma.run(sums, step);
    }
  }
}

}  // namespace
}  // namespace fish::sm120

// output [token_count][rows] fp32. Scales as the GEMM reads them.
extern "C" void fish_emulate_mxfp8_gemm(const uint8_t* tokens, const uint32_t* token_scales, const uint8_t* weights,
                                        const uint32_t* weight_scales, float* output, int token_count, int rows,
                                        int columns) {
  using namespace fish::sm120;
  const Operands operands{tokens, weights, token_scales, weight_scales, token_count, rows, columns};
  for (int first_row = 0; first_row < rows; first_row += kRows) {
    for (int warp = 0; warp < kWarps; ++warp) {
      for (int first_token = 0; first_token < token_count; first_token += kMmaTokens) {
        float sums[32][4] = {};
        run_warp(operands, first_row, warp, first_token, sums);
        for (int lane = 0; lane < 32; ++lane) {
          for (int i = 0; i < 4; ++i) {
            const int token = first_token + output_token(lane, i);
            const int row = first_row + warp * kMmaRows + output_row(lane, i);
            if (token < token_count) output[static_cast<size_t>(token) * rows + row] = sums[lane][i];
          }
        }
      }
    }
  }
}
