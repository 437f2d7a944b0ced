#!/bin/sh
# Installs an official Node for Linux into /opt/node, if its SHA-256 is the given one.
# Usage: install-node.sh VERSION SHA256 [FOLDER]. The sum of the file node-vVERSION-linux-x64.tar.xz (or -arm64) is in
# https://nodejs.org/dist/vVERSION/SHASUMS256.txt, whose signature SHASUMS256.txt.sig the release keys of Node check.
set -eu
if [ $# -lt 2 ] || [ -z "$2" ]; then
  echo 'usage: install-node.sh VERSION SHA256 [FOLDER]   (see the head of this file for where the sum is)' >&2
  exit 2
fi
version=$1
sum=$2
folder=${3:-/opt/node}
case $(uname -m) in
  x86_64) arch=x64 ;;
  aarch64) arch=arm64 ;;
  *) echo "there is no official Node for $(uname -m) here" >&2; exit 1 ;;
esac
file=$(mktemp)
trap 'rm -f "$file"' EXIT
curl -fsSL --proto '=https' -o "$file" "https://nodejs.org/dist/v$version/node-v$version-linux-$arch.tar.xz"
echo "$sum  $file" | sha256sum -c - >&2
mkdir -p "$folder"
tar -xJf "$file" -C "$folder" --strip-components=1 --no-same-owner
"$folder/bin/node" --version
