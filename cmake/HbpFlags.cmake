# hbp_flags: warnings, and arithmetic that gives the same bits on every compiler and optimisation level.
add_library(hbp_flags INTERFACE)
target_compile_options(hbp_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wstrict-prototypes -Wmissing-prototypes
  -Wpointer-arith -Wcast-qual -Wvla -Wundef -ffp-contract=off -fno-fast-math)
target_compile_definitions(hbp_flags INTERFACE _POSIX_C_SOURCE=200809L)
if(HBP_WERROR)
  target_compile_options(hbp_flags INTERFACE -Werror)
endif()
if(HBP_SANITIZE)
  add_compile_options(-fsanitize=${HBP_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=${HBP_SANITIZE})
endif()
