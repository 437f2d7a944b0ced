#!/bin/sh
# Writes a backup of the database into a folder, and removes those that are older than so many days (14).
# Usage: backup.sh FOLDER [DAYS]. The secret is not in it: keep /etc/wcrm/wcrm.env elsewhere.
set -eu
folder=$1
days=${2:-14}
name=wcrm-$(date -u +%Y%m%dT%H%M%SZ).gz
umask 077
"${NODE:-/opt/node/bin/node}" "$(dirname "$0")/../bin/wcrm.js" admin backup "$folder/$name.partial"
gzip -t "$folder/$name.partial"
# Only a backup that is whole gets its name, and only then do older ones go.
mv "$folder/$name.partial" "$folder/$name"
find "$folder" -maxdepth 1 -name 'wcrm-*.gz' -mtime +"$days" -delete
find "$folder" -maxdepth 1 -name 'wcrm-*.partial' -mtime +1 -delete
