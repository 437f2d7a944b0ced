#!/bin/sh
# Fills in the templates (*.in) for one machine: render.sh NUMBER FOLDER [cluster.env]. NUMBER is that of its ADDRESS_n.
# A machine with HAProxy alone takes any of them. The files hold passwords, and are readable for their owner alone.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
number=$1
folder=$2
case $number in 1 | 2 | 3) ;; *)
  echo 'NUMBER must be 1, 2 or 3' >&2
  exit 2
  ;;
esac
set -a
NODE=wcrm-$number
# shellcheck source=cluster.env.example
. "${3:-$here/cluster.env}"
eval "ADDRESS=\$ADDRESS_$number"
set +a
umask 077
mkdir -p "$folder"
for template in "$here"/*.in; do
  name=$(basename "$template" .in)
  { echo 'cat <<END_OF_TEMPLATE' && cat "$template" && echo END_OF_TEMPLATE; } | sh -u > "$folder/$name"
done
