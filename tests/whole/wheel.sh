#!/bin/sh
# The source distribution has what it builds from, and builds a wheel away from the repository; the wheel has what its name and
# metadata say, and works where it alone is installed beside numpy. Skipped (77) where the package index cannot be reached.
# usage: wheel.sh SOURCE [--published]
#     --published also builds the wheel that is published, against an old C library, and runs it in an old Debian: some minutes, as root
set -eu
source=$(cd "$1" && pwd)
. "$source/cmake/packages.sh"
python=$(python_with_numpy) || { echo "no Python with numpy"; exit 77; }
python=$("$python" -c 'import sys; print(sys.executable)')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
show() { "$@" >"$work/log" 2>&1 || { tail -n 30 "$work/log"; echo "failed: $*"; exit 1; }; }

"$python" -m venv --system-site-packages "$work/tools" 2>"$work/log" || { echo "no venv: $(tail -n 1 "$work/log")"; exit 77; }
"$work/tools/bin/pip" install -q build 'scikit-build-core>=0.11' >"$work/log" 2>&1 || { echo "no package index: $(tail -n 1 "$work/log")"; exit 77; }

# The wheel is made of the unpacked source distribution. Compiled in less time than what users get.
show "$work/tools/bin/python" -m build --no-isolation --outdir "$work/dist" -Ccmake.define.HBP_IO=ON \
    -Ccmake.define.CMAKE_C_FLAGS_RELEASE=-O1 "$source"
"$work/tools/bin/python" - "$source" "$work/dist" <<'END'
import pathlib, re, sys, tarfile, zipfile
from packaging.metadata import Metadata

source, dist = map(pathlib.Path, sys.argv[1:])
version = re.search(r'HBP_VERSION_STRING "(.+)"', (source / "include/hbp/base.h").read_text())[1]
held = {name.split("/", 1)[1] for name in tarfile.open(dist / f"hbp-{version}.tar.gz").getnames() if "/" in name}
wanted = {"LICENSE", "README.md", "CMakeLists.txt", "pyproject.toml", "bindings/python/src/hbp/py.typed"}
for folder in ("include", "lib", "cmake", "examples/hbp", "examples/common", "bindings/python/src", "bindings/python/wheel"):
    wanted |= {str(f.relative_to(source)) for f in (source / folder).rglob("*") if f.suffix in {".c", ".h", ".in", ".inc", ".map", ".py", ".pyi", ".cmake", ".sh"}}
assert not wanted - held, f"not in the source distribution: {sorted(wanted - held)}"
foreign = [name for name in held if re.match(r"build|dist|venv|\.git/", name) or name.endswith((".o", ".so", ".pyc"))]
assert not foreign, f"in the source distribution: {foreign[:9]}"

wheel, = dist.glob("*.whl")
assert re.fullmatch(rf"hbp-{version}-py3-none-(linux|macosx)_\w+\.whl", wheel.name), wheel.name
files = zipfile.ZipFile(wheel)
info = f"hbp-{version}.dist-info"
held = set(files.namelist())
wanted = {f"{info}/licenses/LICENSE", "hbp/bin/hbp", f"hbp-{version}.data/scripts/hbp", "hbp/py.typed"}
wanted |= {f"hbp/{f.name}" for f in (source / "bindings/python/src/hbp").glob("*.py*")}
assert not wanted - held, f"not in the wheel: {sorted(wanted - held)}"
assert sum("/libhbp" in name for name in held) == 2, held
programs = [name for name in held if files.getinfo(name).external_attr >> 16 & 0o111 and name.endswith("/hbp")]
assert len(programs) == 2, programs
assert "\nTag: py3-none-" in files.read(f"{info}/WHEEL").decode()
meta = Metadata.from_email(files.read(f"{info}/METADATA"), validate=True)
assert (meta.name, str(meta.version), meta.license_expression) == ("hbp", version, "Apache-2.0"), meta
assert [r.name for r in meta.requires_dist] == ["numpy"] and "3.9" in meta.requires_python and "3.8" not in meta.requires_python
assert "import hbp" in meta.description and meta.description_content_type == "text/markdown"
END

"$python" -m venv --system-site-packages "$work/venv"
show "$work/venv/bin/pip" install --no-index --no-deps "$work"/dist/*.whl
cd "$work/dist"
unset HBP_LIBRARY HBP_IO_LIBRARY PYTHONPATH
"$work/venv/bin/python" "$source/bindings/python/wheel/try.py" .
version=$("$work/venv/bin/hbp" --version)
[ "$version" = "hbp $(ls ./*.tar.gz | sed 's/.*hbp-\(.*\)\.tar\.gz/\1/')" ] || { echo "hbp --version prints '$version'"; exit 1; }
digest=$("$work/venv/bin/hbp" plan lengths.npy --model llama-3.1-8b --machine h100:4 --max-length 128K --json | sed -n 's/.*"digest": "\(.*\)".*/\1/p')
same=$("$work/venv/bin/hbp" show plan.msgpack --json | sed -n 's/.*"digest": "\(.*\)".*/\1/p')
[ -n "$digest" ] && [ "$digest" = "$same" ] || { echo "the command plans $digest, Python $same"; exit 1; }
if [ "${2:-}" = --published ]; then
    sh "$source/bindings/python/wheel/build.sh" "$work/published"
    sh "$source/bindings/python/wheel/old_root.sh" "$work"/published/*.whl
fi
echo "$(ls -- *.tar.gz) and $(ls -- *.whl)"
