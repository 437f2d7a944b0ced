#!/bin/sh
# Installs an official Node for Linux into /opt/node, if its SHA-256 is the given one.
# Usage: install-node.sh VERSION SHA256 [FOLDER]. The sum of the file node-vVERSION-linux-x64.tar.xz (or -arm64) is in
# https://nodejs.org/dist/vVERSION/SHASUMS256.txt, whose signature SHASUMS256.txt.sig the release keys of Node check.
# NODE_MIRROR is the address of a mirror of https://nodejs.org/dist, for a machine that reaches only that.
set -eu
mirror=${NODE_MIRROR:-https://nodejs.org/dist}
case $(uname -m) in
  x86_64) arch=x64 ;;
  aarch64) arch=arm64 ;;
  *) echo "there is no official Node for $(uname -m) here" >&2; exit 1 ;;
esac
if [ $# -lt 2 ] || [ -z "$2" ]; then
  echo "usage: install-node.sh VERSION SHA256 [FOLDER]
The sum of VERSION: curl -fsS $mirror/v${1:-VERSION}/SHASUMS256.txt | grep linux-$arch.tar.xz" >&2
  exit 2
fi
version=$1
sum=$2
folder=${3:-/opt/node}
for program in curl sha256sum tar xz; do
  command -v "$program" > /dev/null || { echo "install-node.sh needs $program: apt-get install curl xz-utils" >&2; exit 1; }
done
file=$(mktemp)
trap 'rm -f "$file"' EXIT
curl -fsSL --proto '=https' -o "$file" "$mirror/v$version/node-v$version-linux-$arch.tar.xz"
if ! echo "$sum  $file" | sha256sum -c --quiet - > /dev/null 2>&1; then
  echo "The file has the sum $(sha256sum "$file" | cut -d' ' -f1), not $sum: nothing was installed" >&2
  exit 1
fi
mkdir -p "$folder"
tar -xJf "$file" -C "$folder" --strip-components=1 --no-same-owner
"$folder/bin/node" --version
