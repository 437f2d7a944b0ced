import { errors } from '../catalog/errors.ts'
import type { Operation } from '../catalog/operation.ts'
import { getToolsets } from './toolsets.ts'

/** A text resource: what `resources/list` shows, and what `resources/read` returns. */
export type TextResource = {
  uri: string
  name: string
  title: string
  description: string
  mimeType: 'text/markdown'
  text: string
}

/** Returns the resources of a catalog: its operations and the error codes. */
export const createResources = (operations: readonly Operation[]): TextResource[] => [
  {
    uri: 'wcrm://operations',
    name: 'operations',
    title: 'Operations',
    mimeType: 'text/markdown',
    description: 'Every operation on one line: name, scope, toolsets and summary.',
    text: [
      '# Operations',
      '',
      '| operation | scope | toolsets | what it does |',
      '|---|---|---|---|',
      ...operations.map(
        (op) =>
          `| ${op.name} | ${op.scope} | ${getToolsets(op).join(', ')} | ` +
          `${op.summary}${op.confirm ? ` (confirm: ${op.confirm})` : ''} |`,
      ),
    ].join('\n'),
  },
  {
    uri: 'wcrm://errors',
    name: 'errors',
    title: 'Error codes',
    mimeType: 'text/markdown',
    description: 'Every error code: status, when it happens and how to fix it.',
    text: [
      '# Error codes',
      '',
      '| code | status | when | fix |',
      '|---|---|---|---|',
      ...Object.entries(errors).map(
        ([code, { status, description, fix }]) => `| ${code} | ${status} | ${description} | ${fix} |`,
      ),
    ].join('\n'),
  },
]
