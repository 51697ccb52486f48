#include "tests/catch.h"  // a library needs one source; Catch2 3 brings the main itself
