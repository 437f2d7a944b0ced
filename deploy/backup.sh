#!/bin/sh
# Writes a backup of the database into a folder, checks it, and removes those that are older than so many days (14).
# Usage: backup.sh FOLDER [DAYS [--media]]. The secret is not in it: keep /etc/wcrm/wcrm.env elsewhere. Received files
# are in it with --media.
set -eu
folder=$1
days=${2:-14}
media=${3:-}
name=wcrm-$(date -u +%Y%m%dT%H%M%SZ).gz
umask 077
admin() {
  "${NODE:-/opt/node/bin/node}" "$(dirname "$0")/../bin/wcrm.js" admin "$@"
}
admin backup "$folder/$name.partial" $media
admin backup verify "$folder/$name.partial" > /dev/null
# Only a backup that is whole gets its name, and only then do older ones go.
mv "$folder/$name.partial" "$folder/$name"
find "$folder" -maxdepth 1 -name 'wcrm-*.gz' -mtime +"$days" -delete
find "$folder" -maxdepth 1 -name 'wcrm-*.partial' -mtime +1 -delete
