import { writeFileSync } from 'node:fs'
import { catalog, currentVersion, type Operation, versions } from '../catalog/index.ts'
import type { ApiVersion, VersionChange } from '../catalog/versions.ts'

// Generates docs/api-versions.md: how versions work, and what each of them changed.

const operations: readonly Operation[] = catalog

const toDay = (time: string | undefined): string => time?.slice(0, 10) ?? ''

const versionRow = ({ id, deprecatedAt, sunsetAt }: ApiVersion): string =>
  `| \`${id}\`${id === currentVersion ? ' (current)' : ''} | ${toDay(deprecatedAt)} | ${toDay(sunsetAt)} |`

const describeChange = (change: VersionChange): string =>
  change.kind === 'renamed'
    ? `${change.in === 'input' ? 'the field' : 'in the answer'} \`${change.from}\` is \`${change.to}\``
    : change.kind === 'required'
      ? `the field \`${change.field}\` is required`
      : `the answer no longer has \`${change.field}\` in \`${change.at}\``

const changeRow = ({ name, changes = [] }: Operation, version: string): string[] =>
  changes
    .filter((change) => change.version === version)
    .map((change) => `- \`${name}\`: ${describeChange(change)}. ${change.why}`)

const renderChanges = ({ id }: ApiVersion, index: number): string =>
  index === 0
    ? `### ${id}\n\nThe first version.`
    : `### ${id}\n\n${operations.flatMap((op) => changeRow(op, id)).join('\n')}`

/** Renders the page as it should be committed. */
export const renderApiVersions = (): string => `# API versions

A version is a date. A key is pinned to the version that was current when it was made, so an upgrade of the server
changes nothing for it. The header \`Api-Version\` asks for another one for a request; every response names its own in
the same header. An unknown version is a 400 with those that are served.

| version | deprecated | may be removed after |
|---|---|---|
${versions.map(versionRow).join('\n')}

A version is needed only for a change that could break a caller: a field that is renamed, removed or means something
else. New operations, optional input fields, fields of answers, event types and error reasons come without one, so
ignore what you do not know. Events have versions of their own, in their type: \`message.received/1\`.

**Before a version ends**, its responses say so for at least 180 days: \`Deprecation\` (RFC 9745) since when it is
deprecated, \`Sunset\` (RFC 8594) from when it may be removed, and \`Link\` with this page.

\`\`\`
$ curl -si "$WCRM_URL/v1/me" -H "Authorization: Bearer $WCRM_API_KEY" -H 'Api-Version: 2026-10-01' |
    grep -iE '^(api-version|deprecation|sunset|link)'
api-version: 2026-10-01
deprecation: @1795392000
link: <http://127.0.0.1:8080/docs/api-versions>; rel="deprecation"; type="text/html"
sunset: Tue, 01 Jun 2027 00:00:00 GMT
\`\`\`

**To move on**: read the changes below, send \`Api-Version\` with the new version from one place after the other, then
pin the key to it on the server: \`wcrm admin keys update ID --api-version ${currentVersion}\`. \`wcrm admin doctor\`
counts the keys that are pinned to a deprecated version.

| caller | its version |
|---|---|
| REST and \`/v1/ops\` | that of the key, or of the header |
| \`@wcrm/client\` and the command line | the one that they were made for, or \`apiVersion\`, \`WCRM_API_VERSION\` |
| \`wcrm api\` | that of the key, or of \`WCRM_API_VERSION\` |
| MCP | always the current one: tools are described to each client as they are |

\`/openapi.json\` and \`/openapi-ops.json\` describe the current version; \`/openapi-2026-10-01.json\` and
\`/openapi-ops-2026-10-01.json\` an earlier one; the current one has such a name too. A repeat
with the same \`Idempotency-Key\` is answered in the version that it asks for itself.

## Changes

${versions.map(renderChanges).toReversed().join('\n\n')}
`

if (import.meta.main) writeFileSync(new URL('../docs/api-versions.md', import.meta.url), renderApiVersions())
