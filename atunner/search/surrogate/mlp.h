// A neural network with one hidden layer, for policies of a few hundred parameters.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace atunner {

/// inputs → `hidden` × tanh → one number. Parameters in one row: per hidden unit its weights and
/// its bias, then the output's weights and its bias.
class Mlp {
 public:
  Mlp(size_t inputs, size_t hidden, std::vector<float> parameters)
      : inputs_(inputs), hidden_(hidden), parameters_(std::move(parameters)) {
    parameters_.resize(ParameterCount(inputs, hidden), 0.0f);
  }
  static constexpr size_t ParameterCount(size_t inputs, size_t hidden) {
    return hidden * (inputs + 2) + 1;
  }

  size_t inputs() const { return inputs_; }
  std::vector<float>& parameters() { return parameters_; }
  const std::vector<float>& parameters() const { return parameters_; }

  double operator()(std::span<const float> x) const {
    double out = parameters_.back();
    for (size_t h = 0; h < hidden_; ++h)
      out += static_cast<double>(parameters_[OutputAt(h)]) * Unit(x, h);
    return out;
  }

  /// Adds slope × d output / d parameters to `gradient`.
  void Backward(std::span<const float> x, double slope, std::span<double> gradient) const {
    for (size_t h = 0; h < hidden_; ++h) {
      const double unit = Unit(x, h);
      gradient[OutputAt(h)] += slope * unit;
      const double inner = slope * static_cast<double>(parameters_[OutputAt(h)]) *
                           (1 - unit * unit);
      const size_t row = h * (inputs_ + 1);
      for (size_t i = 0; i < inputs_; ++i) gradient[row + i] += inner * static_cast<double>(x[i]);
      gradient[row + inputs_] += inner;
    }
    gradient.back() += slope;
  }

 private:
  size_t OutputAt(size_t h) const { return hidden_ * (inputs_ + 1) + h; }
  double Unit(std::span<const float> x, size_t h) const {
    const float* row = parameters_.data() + h * (inputs_ + 1);
    float sum = row[inputs_];
    for (size_t i = 0; i < inputs_; ++i) sum += row[i] * x[i];
    return static_cast<double>(std::tanh(sum));
  }

  size_t inputs_;
  size_t hidden_;
  std::vector<float> parameters_;
};

}  // namespace atunner
