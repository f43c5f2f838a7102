#!/bin/sh
# Install the built dashboard: install.sh BUILT DIRECTORY (below the prefix). Run by `meson install`.
set -eu
to=$MESON_INSTALL_DESTDIR_PREFIX/$2
rm -rf "$to"
mkdir -p "$to"
cp -R "$1/." "$to/"
