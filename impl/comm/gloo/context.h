#pragma once
#include "impl/comm/gloo_types.hpp"
