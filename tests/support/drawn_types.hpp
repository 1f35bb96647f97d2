#pragma once
// RapidCheck's templates for the types that tests draw most, instantiated once, in drawn_types.cpp: each has
// some two hundred functions, which every source with a property would compile again. Part of the tests'
// precompiled header (cmake/AssayTests.cmake); without it tests are the same and compile longer.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#define ASSAY_DRAWN(EXTERN, T)                        \
  EXTERN template class rc::Gen<T>;                   \
  EXTERN template rc::Gen<T> rc::gen::arbitrary<T>(); \
  EXTERN template rc::Gen<T>::Gen(rc::gen::detail::ElementOfGen<std::vector<T>>&&)
#define ASSAY_DRAWN_NUMBER(EXTERN, T) \
  ASSAY_DRAWN(EXTERN, T);             \
  EXTERN template rc::Gen<T> rc::gen::inRange<T>(T, T)
#define ASSAY_DRAWN_TYPES(EXTERN)                                                                   \
  ASSAY_DRAWN_NUMBER(EXTERN, int);                                                                  \
  ASSAY_DRAWN_NUMBER(EXTERN, std::int64_t);                                                         \
  ASSAY_DRAWN_NUMBER(EXTERN, std::uint32_t);                                                        \
  ASSAY_DRAWN_NUMBER(EXTERN, std::uint64_t);                                                        \
  ASSAY_DRAWN(EXTERN, double);                                                                      \
  ASSAY_DRAWN(EXTERN, std::string);                                                                 \
  EXTERN template class rc::Gen<bool>;                                                              \
  EXTERN template rc::Gen<bool> rc::gen::arbitrary<bool>();                                         \
  EXTERN template class rc::Gen<std::vector<std::int64_t>>;                                         \
  EXTERN template rc::Gen<std::vector<std::int64_t>> rc::gen::container<std::vector<std::int64_t>>( \
      std::size_t, rc::Gen<std::int64_t>);                                                          \
  EXTERN template bool rc::check<void (*)()>(void (*&&)());                                         \
  EXTERN template void rc::detail::checkGTest<void (*)()>(void (*&&)());                            \
  EXTERN template void rc::detail::checkGTest<void (*)(std::uint64_t)>(void (*&&)(std::uint64_t))

ASSAY_DRAWN_TYPES(extern);
