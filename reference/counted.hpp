#pragma once
// A double that counts the arithmetic done to it. Every reference op is instantiated for it, so that the FLOP
// counts of spec/ops are tested against what the loops really execute.
#include <cmath>
#include <cstdint>

namespace assay::reference {

class Counted {
 public:
  Counted(double value = 0) : value_(value) {}  // NOLINT: implicit, so that constants read like constants
  explicit operator double() const { return value_; }

  /// Arithmetic operations since the last reset, on this thread. Negation, comparison and copies are free.
  static std::int64_t& operations() {
    thread_local std::int64_t count = 0;
    return count;
  }

  friend Counted operator+(Counted a, Counted b) { return counted(a.value_ + b.value_); }
  friend Counted operator-(Counted a, Counted b) { return counted(a.value_ - b.value_); }
  friend Counted operator*(Counted a, Counted b) { return counted(a.value_ * b.value_); }
  friend Counted operator/(Counted a, Counted b) { return counted(a.value_ / b.value_); }
  friend Counted operator-(Counted a) { return {-a.value_}; }
  Counted& operator+=(Counted b) { return *this = *this + b; }
  Counted& operator-=(Counted b) { return *this = *this - b; }
  Counted& operator*=(Counted b) { return *this = *this * b; }
  Counted& operator/=(Counted b) { return *this = *this / b; }
  friend Counted sqrt(Counted a) { return counted(std::sqrt(a.value_)); }
  friend Counted exp(Counted a) { return counted(std::exp(a.value_)); }
  friend Counted log(Counted a) { return counted(std::log(a.value_)); }
  friend auto operator<=>(Counted a, Counted b) { return a.value_ <=> b.value_; }
  friend bool operator==(Counted a, Counted b) { return a.value_ == b.value_; }

 private:
  static Counted counted(double value) {
    ++operations();
    return {value};
  }
  double value_;
};

}  // namespace assay::reference
