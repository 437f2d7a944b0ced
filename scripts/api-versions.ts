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
    ? `${change.in === 'input' ? 'the field' : 'in the response'} \`${change.from}\` is \`${change.to}\``
    : change.kind === 'required'
      ? `the field \`${change.field}\` is required`
      : `the response no longer has \`${change.field}\` in \`${change.at}\``

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

API versions are dates. A key is pinned to the version that was current when it was created, so an upgrade of the
server does not change its responses. The header \`Api-Version\` selects another version for a request, and every
response names its version in the same header. An unknown version is a 400 that lists the supported ones.

| version | deprecated | may be removed after |
|---|---|---|
${versions.map(versionRow).join('\n')}

Only breaking changes get a new version: a field that is renamed, removed or changes its meaning. New operations,
optional input fields, response fields, event types and error reasons are added without one, so clients must ignore
unknown values. Events have their own versions, in their type: \`message.received/1\`.

**Deprecation** is announced in responses for at least 180 days: \`Deprecation\` (RFC 9745) is when the version was
deprecated, \`Sunset\` (RFC 8594) when it may be removed, and \`Link\` points to this page.

\`\`\`
$ curl -si "$WCRM_URL/v1/me" -H "Authorization: Bearer $WCRM_API_KEY" -H 'Api-Version: 2026-10-01' |
    grep -iE '^(api-version|deprecation|sunset|link)'
api-version: 2026-10-01
deprecation: @1795392000
link: <http://127.0.0.1:8787/docs/api-versions>; rel="deprecation"; type="text/html"
sunset: Tue, 01 Jun 2027 00:00:00 GMT
\`\`\`

**To upgrade**, read the changes below, send \`Api-Version\` with the new version from one part of your code after
another, then pin the key to it on the server: \`wcrm admin keys update ID --api-version ${currentVersion}\`.
\`wcrm admin doctor\` counts the keys that are pinned to a deprecated version.

| caller | its version |
|---|---|
| REST and \`/v1/ops\` | that of the key, or of the header |
| \`@wcrm/client\` and the command line | the one that they were built for, or \`apiVersion\`, \`WCRM_API_VERSION\` |
| \`wcrm api\` | that of the key, or of \`WCRM_API_VERSION\` |
| MCP | always the current one, because clients read the tools when they connect |

\`/openapi.json\` and \`/openapi-ops.json\` describe the current version; \`/openapi-2026-10-01.json\` and
\`/openapi-ops-2026-10-01.json\` an earlier one. A repeat with the same
\`Idempotency-Key\` is answered in the version that it requests itself.

## Changes

${versions.map(renderChanges).toReversed().join('\n\n')}
`

if (import.meta.main) writeFileSync(new URL('../docs/api-versions.md', import.meta.url), renderApiVersions())
