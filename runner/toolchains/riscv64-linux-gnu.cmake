# Cross-compile for Linux on riscv64 with the compiler of Debian's package gcc-riscv64-linux-gnu.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR riscv64)
set(CMAKE_C_COMPILER riscv64-linux-gnu-gcc)
set(CMAKE_OBJCOPY riscv64-linux-gnu-objcopy)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
