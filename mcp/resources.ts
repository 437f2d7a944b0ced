import { errors } from '../catalog/errors.ts'
import type { Operation } from '../catalog/operation.ts'
import { describeReason, type Reason, reasons } from '../catalog/reasons.ts'
import { renderFilterGuide, renderTemplateGuide } from './guides.ts'
import { getToolsets } from './toolsets.ts'

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
