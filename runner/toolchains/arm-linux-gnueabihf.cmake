# Cross-compile for Linux on arm with the compiler of Debian's package gcc-arm-linux-gnueabihf.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR arm)
set(CMAKE_C_COMPILER arm-linux-gnueabihf-gcc)
set(CMAKE_OBJCOPY arm-linux-gnueabihf-objcopy)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
