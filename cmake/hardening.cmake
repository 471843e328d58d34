# SPDX-License-Identifier: Apache-2.0
# Included by the release preset: the one hardening flag whose name depends on the processor.
include_guard(GLOBAL)
include(CheckCXXCompilerFlag)
foreach(flag -fcf-protection=full -mbranch-protection=standard)
  string(MAKE_C_IDENTIFIER "has${flag}" known)
  check_cxx_compiler_flag(${flag} ${known})
  if(${known})
    add_compile_options(${flag})
    break()
  endif()
endforeach()
