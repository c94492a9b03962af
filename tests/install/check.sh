#!/bin/sh
# An installed copy serves a user: the example builds through pkg-config (shared and static) and
# through CMake, and runs, wherever the copy was moved.
# usage: check.sh SOURCE BUILD MAKE_CLASSIFIER
set -eu
source=$1 build=$2 make_classifier=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cmake --install "$build" --prefix "$dir/first" >"$dir/install.log"
grep -q ldconfig "$dir/install.log" || { echo "does not say how programs find the library"; exit 1; }
# an installed tree may be moved: nothing in it knows where it was
mkdir "$dir/moved"
mv "$dir/first" "$dir/moved/prefix"
lib=$(dirname "$(dirname "$(find "$dir/moved" -name facula.pc)")")
if grep -rl -e "$dir/first" -e "$build" "$lib/pkgconfig" "$lib/cmake" "$dir/moved/prefix/share"; then
    echo "names the folder where it was built or installed"
    exit 1
fi
export PKG_CONFIG_PATH="$lib/pkgconfig"
unset LD_LIBRARY_PATH
"$make_classifier" "$dir/m.onnx"
{ printf 'P6\n300 260\n255\n'; head -c 234000 /dev/zero | tr '\0' '\372'; } >"$dir/photo.ppm"

cc -std=c11 -Wall -Wextra -Werror -o "$dir/shared" "$source/examples/classify.c" $(pkg-config --cflags --libs facula) \
    $(pkg-config --variable=rpath facula)
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
    [ "$(wc -l <"$dir/out")" -eq 5 ] && head -n 1 "$dir/out" | grep -q ' 950 ' ||
        { echo "$program answers:"; cat "$dir/out"; exit 1; }
done
# the command runs from there, and has its manual and completions
"$dir/moved/prefix/bin/facula" version >/dev/null
for file in man/man1/facula.1 man/man1/facula-run.1 bash-completion/completions/facula zsh/site-functions/_facula \
    fish/vendor_completions.d/facula.fish; do
    [ -s "$dir/moved/prefix/share/$file" ] || { echo "share/$file is not installed"; exit 1; }
done
# a tree of which a part is missing is not found
mv "$lib/libfacula.a" "$lib/libfacula.aside"
if cmake -S "$dir/project" -B "$dir/project/again" -Dfacula_DIR="$lib/cmake/facula" >"$dir/cmake.log" 2>&1 ||
    ! grep -q 'libfacula.a is missing' "$dir/cmake.log"; then
    echo "a copy without libfacula.a is found:"
    cat "$dir/cmake.log"
    exit 1
fi
mv "$lib/libfacula.aside" "$lib/libfacula.a"
# nothing but fac_ is exported
if nm -D --defined-only "$lib/libfacula.so" | grep -v ' fac_' | grep -vE ' [wA] '; then
    echo "exported without the prefix"
    exit 1
fi
echo "installed copy, moved: shared, static and CMake users build and run"
