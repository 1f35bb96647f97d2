#include "tests/support/program/main.hpp"

int main(int argc, char** argv) { return assay::tests::run(argc, argv); }
