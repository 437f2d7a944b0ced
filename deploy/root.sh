#!/bin/sh
# The steps of Dockerfile in a clean Debian root, for a machine without a registry of images: debootstrap, the product as
# `npm ci` installs it, then a server that is not root on a root that is read-only. It waits for its health check and
# stops it by SIGTERM. As root: deploy/root.sh FOLDER NODE, where NODE is a Node 26 binary and FOLDER is new or holds a
# root that debootstrap made. It needs debootstrap, git, npm and unshare.
set -eu
root=$(realpath -m "$1")
node=$(realpath "$2")
source=$(cd "$(dirname "$0")/.." && pwd)

[ -x "$root/bin/sh" ] || debootstrap --variant=minbase --include=ca-certificates,libatomic1,libstdc++6 bookworm "$root"
rm -rf "$root/opt/wcrm"
mkdir -p "$root/opt/node/bin" "$root/opt/wcrm"
install -m 0755 "$node" "$root/opt/node/bin/node"
git -C "$source" archive HEAD | tar -x -C "$root/opt/wcrm"
(cd "$root/opt/wcrm" && npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund)
rm -rf "$root/opt/wcrm/tests" "$root/opt/wcrm/bench" "$root/opt/wcrm/scripts"
chroot "$root" id wcrm > /dev/null 2>&1 ||
  chroot "$root" useradd --uid 10001 --user-group --home-dir /var/lib/wcrm --shell /usr/sbin/nologin wcrm
chroot "$root" install -d -m 0700 -o wcrm -g wcrm /var/lib/wcrm

# The mounts are in a namespace of their own, and end with it.
exec unshare --mount --pid --fork --kill-child sh -eu -c '
  root=$1
  mount --bind "$root" "$root"
  mount -t tmpfs -o mode=0700,uid=10001,gid=10001 tmpfs "$root/var/lib/wcrm"
  mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
  mount -t tmpfs -o mode=0755 tmpfs "$root/dev"
  for name in null urandom random; do : > "$root/dev/$name"; mount --bind "/dev/$name" "$root/dev/$name"; done
  mount -t proc proc "$root/proc"
  mount -o remount,ro,bind "$root"
  enter() {
    exec chroot --userspec=10001:10001 "$root" /usr/bin/env -i PATH=/opt/node/bin:/usr/bin:/bin HOME=/var/lib/wcrm \
      WCRM_DATA=/var/lib/wcrm WCRM_HOST=127.0.0.1 WCRM_PORT=18787 WCRM_SHUTDOWN_GRACE=0 "$@"
  }
  in_root() { (enter "$@"); }
  if in_root touch /opt/wcrm/x 2> /dev/null; then echo "the root is not read-only" >&2; exit 1; fi
  enter node /opt/wcrm/bin/wcrm.js serve --no-demo & server=$!
  tries=0
  until in_root node /opt/wcrm/deploy/healthcheck.js; do
    tries=$((tries + 1))
    [ "$tries" -lt 60 ] && kill -0 "$server" || { echo "not ready" >&2; exit 1; }
    sleep 1
  done
  echo "ready after $tries tries, as uid $(in_root id -u)"
  in_root node /opt/wcrm/bin/wcrm.js admin init --workspace Acme --owner Mara | head -3
  kill -TERM "$server"
  code=0; wait "$server" || code=$?
  echo "stopped with $code"
  exit "$code"
' sh "$root"
