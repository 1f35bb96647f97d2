#include "tests/support/drawn_types.hpp"

ASSAY_DRAWN_TYPES();
