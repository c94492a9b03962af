#!/bin/sh
# An installed copy serves a user: the example builds through pkg-config (shared and static) and through CMake, and runs.
# usage: check.sh SOURCE BUILD MAKE_CLASSIFIER
set -eu
source=$1 build=$2 make_classifier=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cmake --install "$build" --prefix "$dir/prefix" >"$dir/install.log"
# the build was configured for another prefix: what names it must be made to fit, as DESTDIR packaging does
lib=$(dirname "$(find "$dir/prefix" -name facula.pc | head -n 1)")/..
sed -i "s|^prefix=.*|prefix=$dir/prefix|" "$lib/pkgconfig/facula.pc"
export PKG_CONFIG_PATH="$lib/pkgconfig" LD_LIBRARY_PATH="$lib"
"$make_classifier" "$dir/m.onnx"
{ printf 'P6\n300 260\n255\n'; head -c 234000 /dev/zero | tr '\0' '\372'; } >"$dir/photo.ppm"

cc -std=c11 -Wall -Wextra -Werror -o "$dir/shared" "$source/examples/classify.c" $(pkg-config --cflags --libs facula)
cc -std=c11 -o "$dir/static" "$source/examples/classify.c" $(pkg-config --cflags facula) "$lib/libfacula.a" $(pkg-config --static --libs-only-l facula | sed 's/-lfacula//')

mkdir "$dir/project"
cat >"$dir/project/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.18)
project(user C)
find_package(facula 0.1 REQUIRED)
add_executable(classify $source/examples/classify.c)
target_link_libraries(classify PRIVATE facula::facula)
END
cmake -S "$dir/project" -B "$dir/project/build" -Dfacula_DIR="$lib/cmake/facula" >"$dir/cmake.log"
cmake --build "$dir/project/build" >>"$dir/cmake.log"

for program in "$dir/shared" "$dir/static" "$dir/project/build/classify"; do
    "$program" "$dir/m.onnx" "$dir/photo.ppm" >"$dir/out"
    [ "$(wc -l <"$dir/out")" -eq 5 ] && head -n 1 "$dir/out" | grep -q ' 950 ' || { echo "$program answers:"; cat "$dir/out"; exit 1; }
done
# nothing but fac_ is exported
if nm -D --defined-only "$lib/libfacula.so" | grep -v ' fac_' | grep -vE ' [wA] '; then
    echo "exported without the prefix"
    exit 1
fi
echo "installed copy: shared, static and CMake users build and run"
