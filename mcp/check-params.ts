import { redactApiKeys } from '../catalog/redact.ts'
import { isObject } from '../catalog/values.ts'

/** What is wrong with the parameters of a request, and how to fix it. */
type ParamFault = { field: string; detail: string; fix: string }

const need = (
  field: string,
  value: unknown,
  type: 'string' | 'object',
  example: string,
): ParamFault | undefined => {
  const isRight = type === 'string' ? typeof value === 'string' : isObject(value)
  const detail = value === undefined ? 'is missing' : `must be ${type === 'string' ? 'a text' : 'an object'}`
  return isRight ? undefined : { field, detail, fix: `Send ${example}.` }
}

const findTextFault = (field: string, values: unknown, example: string): ParamFault | undefined => {
  if (values === undefined) return undefined
  const wrong = need(field, values, 'object', example)
  if (wrong) return wrong
  const [name] = Object.entries(values as object).find(([, value]) => typeof value !== 'string') ?? []
  return name === undefined
    ? undefined
    : { field: `${field}.${name.slice(0, 100)}`, detail: 'must be a text', fix: `Send ${example}.` }
}

/** Each list is one page, so that no cursor is one of ours. Some clients send an empty one for the first page. */
const refuseCursor = ({ cursor }: Record<string, unknown>): ParamFault | undefined =>
  cursor === undefined || cursor === ''
    ? undefined
    : { field: 'cursor', detail: 'is not a cursor of this list', fix: 'Leave it out: the list is one page.' }

const checkInitialize = ({
  protocolVersion,
  capabilities,
  clientInfo,
}: Record<string, unknown>): ParamFault | undefined => {
  const client = '{"name": "my-client", "version": "1.0"}'
  const { name, version } = isObject(clientInfo) ? clientInfo : {}
  return (
    need('protocolVersion', protocolVersion, 'string', 'a revision, such as "2025-11-25"') ??
    need('capabilities', capabilities, 'object', '{} or what the client can do') ??
    ['elicitation', 'experimental', 'roots', 'sampling', 'tasks']
      .filter((each) => (capabilities as Record<string, unknown>)[each] !== undefined)
      .map((each) =>
        need(`capabilities.${each}`, (capabilities as Record<string, unknown>)[each], 'object', '{}'),
      )
      .find((fault) => fault !== undefined) ??
    need('clientInfo', clientInfo, 'object', client) ??
    need('clientInfo.name', name, 'string', client) ??
    need('clientInfo.version', version, 'string', client)
  )
}

const checks: Readonly<Record<string, (params: Record<string, unknown>) => ParamFault | undefined>> = {
  initialize: checkInitialize,
  'tools/list': refuseCursor,
  'resources/list': refuseCursor,
  'resources/templates/list': refuseCursor,
  'prompts/list': refuseCursor,
  'tools/call': ({ name, arguments: input }) =>
    need('name', name, 'string', 'the name of a tool, such as "crm_get_contact"') ??
    (input === undefined
      ? undefined
      : need('arguments', input, 'object', 'its fields, such as {"contact_id": "42"}')),
  'resources/read': ({ uri }) =>
    need('uri', uri, 'string', 'an address of resources/list, such as "wcrm://contacts/42"'),
  'prompts/get': ({ name, arguments: values }) =>
    need('name', name, 'string', 'the name of a prompt of prompts/list') ??
    findTextFault('arguments', values, 'texts, such as {"who": "Ada"}'),
  'completion/complete': ({ ref, argument }) => {
    const example =
      '{"type": "ref/prompt", "name": "contact_brief"} or {"type": "ref/resource", "uri": "wcrm://contacts/{contact}"}'
    if (!isObject(ref)) return need('ref', ref, 'object', example)
    const { type, name, uri } = ref
    if (type !== 'ref/prompt' && type !== 'ref/resource')
      return { field: 'ref.type', detail: 'must be ref/prompt or ref/resource', fix: `Send ${example}.` }
    const target =
      type === 'ref/prompt'
        ? need('ref.name', name, 'string', example)
        : need('ref.uri', uri, 'string', example)
    const given = '{"name": "who", "value": "Ad"}'
    return (
      target ??
      need('argument', argument, 'object', given) ??
      need('argument.name', (argument as { name?: unknown }).name, 'string', given) ??
      need('argument.value', (argument as { value?: unknown }).value, 'string', given)
    )
  },
}

/**
 * Returns the JSON-RPC error of a request whose parameters have wrong types: the field and the fix, where the SDK
 * would print its schema. Undefined for any other message.
 */
export const refuseWrongParams = (request: Request, message: object): Response | undefined => {
  const { id, method, params = {} } = message as { id?: unknown; method?: unknown; params?: unknown }
  const check = typeof method === 'string' && Object.hasOwn(checks, method) ? checks[method] : undefined
  if (!check || (typeof id !== 'string' && typeof id !== 'number')) return undefined
  // Revisions since 2026-07-28 have no such method, which the SDK answers.
  if (method === 'initialize' && (request.headers.get('mcp-protocol-version') ?? '') >= '2026-07-28')
    return undefined
  // The SDK refuses the other methods for it, with the status of a bad request.
  if (!isObject(params) && method !== 'initialize') return undefined
  const fault = isObject(params) ? check(params) : need('', params, 'object', 'an object of fields')
  if (!fault) return undefined
  const at = fault.field === '' ? 'params' : `params.${fault.field}`
  const text = redactApiKeys(`${String(method)}: ${at} ${fault.detail}. ${fault.fix}`)
  return Response.json({ jsonrpc: '2.0', id, error: { code: -32_602, message: text, data: fault } })
}
