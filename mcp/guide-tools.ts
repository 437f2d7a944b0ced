import { holdsScope } from '../server/kernel/access.ts'
import { findDuplicateName } from '../catalog/duplicate-names.ts'
import type { Operation, Scope } from '../catalog/operation.ts'
import type { Decision } from '../catalog/policy.ts'
import { isObject } from '../catalog/values.ts'
import { invalidField, Problem, toProblemDocument } from '../server/kernel/problem.ts'
import { createRequestId } from '../server/ids.ts'
import { findNearestName } from '../server/nearest-name.ts'
import { describeOperation, formatFields, type OperationIndex, searchOperations } from './operation-search.ts'
import type { Tool } from './tools.ts'
import { removeHidden } from './untrusted.ts'
import { isCallable, isShortened, listOperations, type ToolSelection } from './toolsets.ts'

/*
 * Tools of the endpoint itself. `find_tools` and `describe_operation` lead from a short list to every operation.
 * In compact mode three tools take the place of the list; reads and writes have one each, so that what a client
 * allows or asks about stays visible to it.
 */

const readHints: Tool['annotations'] = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
}

const query = {
  type: 'string',
  description: 'Words for what you want to do, such as "unanswered conversations" or "create webhook".',
  maxLength: 200,
}
const limit = { type: 'integer', description: 'Rows, 1 to 20; 6 when absent.', minimum: 1, maximum: 20 }

const findTools: Tool = {
  name: 'find_tools',
  title: 'Find tools by what they do',
  description:
    'Searches all operations of this server, also those that are not in your list of tools, for what you want ' +
    'to do, in your own words. Each row has the tool name, what it does, its fields (`*`: required) and whether ' +
    'your key may run it. Run what you find by its name.',
  inputSchema: { type: 'object', properties: { query, limit }, required: ['query'] },
  annotations: readHints,
}

const describeTool: Tool = {
  name: 'describe_operation',
  title: 'Describe one operation in full',
  description:
    'Returns the input schema of an operation, an example, what it answers, its errors, and whether your key ' +
    'may run it. Read it before the first call of a tool that is not in your list.',
  inputSchema: {
    type: 'object',
    properties: {
      operation: { type: 'string', description: 'Its name, such as `crm_get_contact`.', maxLength: 100 },
    },
    required: ['operation'],
  },
  annotations: readHints,
}

const searchTool: Tool = {
  name: 'search_operations',
  title: 'Find operations',
  description:
    'Start here. With `query`: the operations that fit, each with what it does, its fields (`*`: required) and ' +
    'whether it reads or writes. With `operation`: all about one, with its input schema and an example.',
  inputSchema: {
    type: 'object',
    properties: { query, operation: { type: 'string', description: 'Exact name of one operation.' }, limit },
  },
  annotations: readHints,
}

const operationField = { type: 'string', description: 'Name of the operation.' }

const runReadTool: Tool = {
  name: 'run_read_operation',
  title: 'Run an operation that reads',
  description: 'Runs an operation that `search_operations` calls a read. Changes nothing.',
  inputSchema: {
    type: 'object',
    properties: { operation: operationField, input: { type: 'object', description: 'Its fields.' } },
    required: ['operation'],
  },
  annotations: readHints,
}

const runWriteTool: Tool = {
  name: 'run_write_operation',
  title: 'Run an operation that changes or sends something',
  description:
    'Runs an operation that `search_operations` calls a write. `dry_run: true` in `input` checks everything and ' +
    'changes nothing; to retry, repeat `idempotency_key` in `input`. Where `confirm` is shown, a person is asked.',
  inputSchema: {
    type: 'object',
    properties: { operation: operationField, input: { type: 'object', description: 'Its fields.' } },
    required: ['operation'],
  },
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
}

/** Every tool of this file. */
export const guideTools: readonly Tool[] = [findTools, describeTool, searchTool, runReadTool, runWriteTool]

/** The tools that the short list ends with. */
const listGuideTools: readonly Tool[] = [findTools, describeTool]

/** What answers and runs calls of these tools needs to know. */
export type GuideSource = {
  operations: readonly Operation[]
  byName: ReadonlyMap<string, Operation>
  index: () => OperationIndex
  tools: () => ReadonlyMap<string, Tool>
}

/** Who asks: the tools of the URL, and what the key may do. */
export type GuideCaller = {
  selection: ToolSelection
  scopes: readonly Scope[]
  /** For the key of an AI agent: whether it runs this by itself, a person is asked, or it is refused. */
  decide?: ((op: Operation) => Decision) | undefined
}

/** Returns why the key may not call an operation; undefined where it may. */
const whyNotByKey = (op: Operation, { scopes, decide }: GuideCaller): string | undefined => {
  if (!holdsScope({ scopes, agent: decide !== undefined }, op)) return `The key lacks the scope ${op.scope}.`
  // A policy is about changes.
  return op.scope !== 'mcp:read' && decide?.(op) === 'deny' ? 'The policy of the key denies it.' : undefined
}

const toAllowed =
  (caller: GuideCaller) =>
  (op: Operation): boolean =>
    whyNotByKey(op, caller) === undefined

/** Returns why an operation is not run for this caller at this address; undefined where it is. */
const whyNot = (op: Operation, caller: GuideCaller): string | undefined =>
  whyNotByKey(op, caller) ??
  (isCallable(op, caller.selection)
    ? undefined
    : 'Not served at this address: its `toolsets` or `readonly` exclude it.')

/** Returns the tools of compact mode; that for writes only where this URL and key may write. */
const listCompactTools = ({ operations }: GuideSource, caller: GuideCaller): Tool[] => {
  const mayWrite = operations.some((op) => op.scope !== 'mcp:read' && whyNot(op, caller) === undefined)
  return [searchTool, runReadTool, ...(mayWrite ? [runWriteTool] : [])]
}

/** Returns the tools that this URL shows to this key. */
export const listTools = (source: GuideSource, caller: GuideCaller): Tool[] => {
  const { selection } = caller
  if (selection.compact) return listCompactTools(source, caller)
  const listed = listOperations(source.operations, toAllowed(caller), selection)
  return [
    ...listed.map((op) => source.tools().get(op.name)!),
    ...(isShortened(source.operations, selection) ? listGuideTools : []),
  ]
}

/** An answer of a guide tool: a JSON object, or an error with its fix. */
export type GuideAnswer = { body: Record<string, unknown> } | { problem: Problem; fix: string }

/** What a call of a tool comes to: an operation to run, an answer, or undefined for an unknown tool. */
export type ResolvedCall =
  | { operation: Operation; input: Record<string, unknown> }
  | { answer: GuideAnswer }
  | undefined

/** Returns the result of a tool call that answers without running an operation; an error as those of operations. */
export const toGuideResult = (answer: GuideAnswer, publicUrl: string) => {
  if ('body' in answer)
    return {
      content: [{ type: 'text' as const, text: JSON.stringify(answer.body) }],
      structuredContent: answer.body,
    }
  const requestId = createRequestId()
  const text = { ...toProblemDocument(answer.problem, publicUrl, requestId), fix: answer.fix }
  return {
    content: [{ type: 'text' as const, text: removeHidden(JSON.stringify(text)) }],
    isError: true,
    _meta: { 'wcrm/request_id': requestId },
  }
}

/** Refuses a field of a guide tool. */
const refuseField = (field: string, code: string, detail: string, fix: string): ResolvedCall => ({
  answer: { problem: invalidField(field, code, detail, { fix }), fix },
})

/** Returns what the call of a tool comes to: the operation of this name, or what a guide tool does with it. */
export const resolveCall = (
  source: GuideSource,
  caller: GuideCaller,
  name: string,
  input: Record<string, unknown>,
): ResolvedCall => {
  const operation = source.byName.get(name)
  if (operation) return { operation, input }
  const tool = guideTools.find((one) => one.name === name)
  const fields = Object.keys((tool?.inputSchema['properties'] as object | undefined) ?? {})
  const stray = Object.keys(input).find((field) => !fields.includes(field))
  if (tool && stray !== undefined)
    return refuseField(
      stray.slice(0, 100),
      'unknown_field',
      `is not a field of ${name}`,
      fields.includes('input')
        ? 'Put the fields of the operation into `input`.'
        : `Its fields are ${fields.map((field) => `\`${field}\``).join(' and ')}.`,
    )
  switch (name) {
    case 'find_tools':
      return find(source, caller, input)
    case 'describe_operation':
      return describe(source, caller, input['operation'])
    case 'search_operations':
      return input['operation'] === undefined
        ? find(source, caller, input)
        : describe(source, caller, input['operation'])
    case 'run_read_operation':
    case 'run_write_operation':
      return unwrap(source, name, input)
    default:
      return undefined
  }
}

const mayRun = (op: Operation, caller: GuideCaller): Record<string, unknown> => {
  const why = whyNot(op, caller)
  if (why !== undefined) return { allowed: false, why_not: why }
  const { decide } = caller
  return { allowed: true, ...(decide && op.scope !== 'mcp:read' ? { policy: decide(op) } : {}) }
}

const find = (
  source: GuideSource,
  caller: GuideCaller,
  { query: words, limit: given = 6 }: Record<string, unknown>,
) => {
  if (typeof words !== 'string' || words.trim() === '' || words.length > 200)
    return refuseField(
      'query',
      'invalid_value',
      'must be a text of 1 to 200 characters',
      'Say in a few words what you want to do.',
    )
  if (!Number.isInteger(given) || (given as number) < 1 || (given as number) > 20)
    return refuseField(
      'limit',
      'invalid_value',
      'must be a whole number from 1 to 20',
      'Leave it out for 6 rows.',
    )
  const found = searchOperations(source.index(), words)
  const listed = new Set(
    caller.selection.compact ? [] : listOperations(source.operations, toAllowed(caller), caller.selection),
  )
  return {
    answer: {
      body: {
        data: found.slice(0, given as number).map(({ op, input }) => ({
          name: op.name,
          summary: op.summary,
          kind: op.scope === 'mcp:read' ? 'read' : 'write',
          ...(op.confirm ? { confirm: op.confirm } : {}),
          fields: formatFields(input),
          ...mayRun(op, caller),
          ...(caller.selection.compact ? {} : { listed: listed.has(op) }),
        })),
        total: found.length,
        ...(found.length === 0
          ? {
              note: 'Nothing fits. Try other words, such as contact, conversation, template, tag or webhook.',
            }
          : {}),
      },
    },
  }
}

const describe = (source: GuideSource, caller: GuideCaller, name: unknown): ResolvedCall => {
  const op = typeof name === 'string' ? source.byName.get(name) : undefined
  return op
    ? { answer: { body: { ...describeOperation(op), ...mayRun(op, caller) } } }
    : unknownOperation(source, name)
}

const unknownOperation = ({ operations }: GuideSource, name: unknown): ResolvedCall => {
  if (typeof name !== 'string')
    return refuseField(
      'operation',
      'invalid_type',
      'must be the name of an operation',
      'Search for it first.',
    )
  const nearest = findNearestName(
    name,
    operations.map((op) => op.name),
  )
  const fix = nearest === undefined ? 'Search for it by what it does.' : `Did you mean ${nearest}?`
  return {
    answer: { problem: new Problem('not_found', `There is no operation ${name.slice(0, 100)}.`), fix },
  }
}

/** Returns the operation that a call of compact mode names. Some models write `input` as JSON text. */
const unwrap = (
  source: GuideSource,
  name: 'run_read_operation' | 'run_write_operation',
  { operation: wanted, input: given = {} }: Record<string, unknown>,
): ResolvedCall => {
  const operation = typeof wanted === 'string' ? source.byName.get(wanted) : undefined
  if (!operation) return unknownOperation(source, wanted)
  const reads = operation.scope === 'mcp:read'
  if (reads !== (name === 'run_read_operation'))
    return refuseField(
      'operation',
      'invalid_value',
      `${operation.name} ${reads ? 'only reads' : 'changes data'}`,
      `Call ${reads ? 'run_read_operation' : 'run_write_operation'}.`,
    )
  const input = typeof given === 'string' ? parseObject(given) : given
  const twice = typeof given === 'string' && isObject(input) ? findDuplicateName(given) : undefined
  if (twice !== undefined)
    return refuseField('input', 'invalid_value', `gives ${twice} twice`, 'Give each field once.')
  return isObject(input) && !Object.hasOwn(input, '__proto__')
    ? { operation, input }
    : refuseField('input', 'invalid_type', 'must be an object', `Its fields are those of ${operation.name}.`)
}

const parseObject = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
