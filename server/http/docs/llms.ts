import type { Operation } from '../../../catalog/index.ts'
import { getGroupOf } from '../openapi.ts'
import { tagDescriptions } from '../openapi-tags.ts'
import type { Guide } from './guides.ts'
import { renderGroup } from './operations.ts'

const intro = `# wcrm

> Messaging and CRM for one workspace: contacts, conversations, messages, templates, broadcasts, webhooks and
> reports. Every operation is a REST route, \`POST /v1/ops/<name>\`, an MCP tool and a command.
> Changes take \`dry_run\`; errors are
> \`application/problem+json\` with a stable \`code\`.
`

/** Returns `/llms.txt`: what the server's documents are, with links to them as Markdown. */
export const renderLlmsText = (
  guides: readonly Guide[],
  operations: readonly Operation[],
  publicUrl: string,
): string => {
  const groups = [...Map.groupBy(guides, ({ group }) => group)].map(
    ([group, members]) =>
      `## ${group}\n\n${members
        .map(({ name, title, about }) => `- [${title}](${publicUrl}/docs/${name}.md): ${about}`)
        .join('\n')}`,
  )
  const reference = [...Map.groupBy(operations, getGroupOf).keys()].map(
    (group) => `- [${group}](${publicUrl}/docs/reference/${group}.md): ${tagDescriptions[group] ?? ''}`,
  )
  return `${intro}
${groups.join('\n\n')}

## API reference

${reference.join('\n')}

## Optional

- [OpenAPI of the REST routes](${publicUrl}/openapi.json)
- [OpenAPI of /v1/ops](${publicUrl}/openapi-ops.json)
- [Postman collection](${publicUrl}/docs/postman.json)
- [All of this in one file](${publicUrl}/llms-full.txt)
`
}

/** Returns `/llms-full.txt`: all guides and the reference, one after the other. */
export const renderLlmsFullText = (guides: readonly Guide[], operations: readonly Operation[]): string =>
  [
    intro,
    ...guides.map(({ markdown }) => markdown),
    ...[...Map.groupBy(operations, getGroupOf).keys()].map((group) => renderGroup(group, operations)),
  ].join('\n\n')
