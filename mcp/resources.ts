import { errors } from '../catalog/errors.ts'
import type { Operation } from '../catalog/operation.ts'
import { describeReason, type Reason, reasons } from '../catalog/reasons.ts'
import { getToolsets } from './toolsets.ts'
import { Filter, filterLimits } from '../catalog/filters.ts'
import {
  type FilterField,
  operators,
  relations,
  contactFields,
  synonyms,
} from '../server/domains/filters/grammar.ts'
import { rulesByTopic } from '../server/domains/templates/lint.ts'
import { ruleSources } from '../server/domains/templates/lint/rule.ts'

/** A text resource: what `resources/list` shows, and what `resources/read` returns. */
export type TextResource = {
  uri: string
  name: string
  title: string
  description: string
  mimeType: 'text/markdown'
  text: () => string
}

const renderOperations = (operations: readonly Operation[]): string =>
  [
    '# Operations',
    '',
    '| operation | scope | toolsets | what it does |',
    '|---|---|---|---|',
    ...operations.map(
      (op) =>
        `| ${op.name} | ${op.scope} | ${getToolsets(op).join(', ')} | ` +
        `${op.summary}${op.confirm ? ` (confirm: ${op.confirm})` : ''} |`,
    ),
  ].join('\n')

const renderErrors = (): string =>
  [
    '# Error codes',
    '',
    '| code | status | when | fix |',
    '|---|---|---|---|',
    ...Object.entries(errors).map(
      ([code, { status, description, fix }]) => `| ${code} | ${status} | ${description} | ${fix} |`,
    ),
    '',
    '# Reasons',
    '',
    '`reason` of an error, with the codes that it goes with.',
    '',
    '| reason | codes | when |',
    '|---|---|---|',
    ...Object.entries(reasons).map(
      ([reason, { codes }]) => `| ${reason} | ${codes.join(', ')} | ${describeReason(reason as Reason)} |`,
    ),
  ].join('\n')

/** Returns the resources that are the same for everybody, all written from the code. */
export const createResources = (operations: readonly Operation[]): TextResource[] =>
  [
    {
      uri: 'wcrm://operations',
      name: 'operations',
      title: 'Operations',
      description: 'Every operation on one line: name, scope, toolsets and summary.',
      text: () => renderOperations(operations),
    },
    {
      uri: 'wcrm://guides/filters',
      name: 'filter-guide',
      title: 'Contact filters',
      description: 'How to write a contact filter: fields, operators, dates, limits and examples.',
      text: () => renderFilterGuide(operations),
    },
    {
      uri: 'wcrm://guides/template-rules',
      name: 'template-rules',
      title: 'Rules of templates',
      description: 'What a message template must be like to be approved.',
      text: renderTemplateGuide,
    },
    {
      uri: 'wcrm://errors',
      name: 'errors',
      title: 'Error codes',
      description: 'Every error code and reason: when it happens and how to fix it.',
      text: renderErrors,
    },
  ].map((resource) => ({ ...resource, mimeType: 'text/markdown' as const }))

const code = (text: string): string => `\`${text}\``

const formatField = (name: string, { kind, optional, words }: FilterField): string =>
  `| ${code(name)} | ${operators[kind].map(code).join(' ')} | ` +
  `${[words && `one of ${words.map(code).join(' ')}`, optional && 'may be absent'].filter(Boolean).join('; ')} |`

const formatFields = (fields: Readonly<Record<string, FilterField>>): string[] => [
  '| field | operators | |',
  '|---|---|---|',
  ...Object.entries(fields).map(([name, field]) => formatField(name, field)),
]

const furtherExamples: readonly [title: string, filter: object][] = [
  [
    'VIPs who wait for an answer',
    {
      tags: { some: { name: { eq: 'VIP' } } },
      conversations: { some: { state: { eq: 'open' }, unreadCount: { gt: 0 } } },
    },
  ],
  [
    'Silent for 90 days, or always',
    { or: [{ lastActivityAt: { lt: '-90d' } }, { lastActivityAt: { isNull: true } }] },
  ],
]

/** The examples of all operations that take a filter, each once. */
const listFilterExamples = (operations: readonly Operation[]): string[] => {
  const examples = operations.flatMap(({ examples: each }) =>
    each.flatMap(({ title, input }) => {
      const { filter } = input as { filter?: unknown }
      return filter ? [[JSON.stringify(filter), title] as const] : []
    }),
  )
  return [...new Map(examples)].map(([filter, title]) => `- ${title}: ${code(filter)}`)
}

/** Returns the guide to contact filters, from the grammar that the server checks them by. */
const renderFilterGuide = (operations: readonly Operation[]): string =>
  [
    '# Contact filters',
    '',
    Filter.description!,
    '',
    '## Fields of a contact',
    '',
    ...formatFields(contactFields),
    '',
    ...Object.entries(relations).flatMap(([name, { quantifiers, fields }]) => [
      `## ${code(name)}: ${quantifiers.map(code).join(', ')} of`,
      '',
      ...(name === 'attributes'
        ? ['`attributeName: {eq: key}` names the custom field, beside one of:', '']
        : []),
      ...formatFields(fields),
      '',
    ]),
    '## Meaning',
    '',
    '- An absent value matches no comparison; only `isNull` matches it. `not` negates a whole condition.',
    '- `contains`, `startsWith` and `endsWith` ignore case; `eq`, `ne`, `in`, `notIn` are exact.',
    '- `every` also holds where there are none.',
    `- Limits: ${Object.entries(filterLimits)
      .map(([name, limit]) => `${name} ${limit}`)
      .join(', ')}.`,
    '- crm_check_filter explains a filter in words without running it; crm_count_contacts counts its matches.',
    '',
    '## Not their names',
    '',
    Object.entries(synonyms)
      .map(([other, name]) => `${code(other)} is ${code(name)}`)
      .join(', '),
    '',
    '## Examples',
    '',
    ...listFilterExamples(operations),
    ...furtherExamples.map(([title, filter]) => `- ${title}: ${code(JSON.stringify(filter))}`),
  ].join('\n')

/** Returns the rules of template drafts, from the rules that the lint runs. */
const renderTemplateGuide = (): string =>
  [
    '# Rules of template drafts',
    '',
    'messaging_lint_template checks a draft against all of them and saves nothing. An error is refused when the ' +
      'template is submitted; a warning is advice. Variables are `{{1}}`, `{{2}}` and so on.',
    '',
    ...Object.entries(ruleSources).map(([source, about]) => `- *${source}*: ${about}`),
    '',
    ...Object.entries(rulesByTopic).flatMap(([topic, rules]) => [
      `## ${topic}`,
      '',
      ...rules.map(({ id, severity, source, about }) => `- ${code(id)} (${severity}, ${source}): ${about}`),
      '',
    ]),
  ].join('\n')
