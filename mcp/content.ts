import {
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  type Server,
  type ServerContext,
} from '@modelcontextprotocol/server'
import type { OperationName } from '../catalog/index.ts'
import { redactApiKeys } from '../catalog/redact.ts'
import { explainNoPrompt, findArgument, getPrompt, prompts } from './prompts.ts'
import { findRecord, type RecordResource, recordResources, type RunRead } from './record-resources.ts'
import type { TextResource } from './resources.ts'

/** What serves resources, prompts and completion of one request. */
export type ContentSource = {
  resources: () => readonly TextResource[]
  /** Returns what runs reads as the caller of a request. */
  run: (context: ServerContext) => RunRead
  /** Whether the caller may run an operation at this URL. */
  mayRun: (operation: OperationName) => boolean
}

/** What a record says depends on who reads it, and changes at any time. */
const notCached = { ttlMs: 0, cacheScope: 'private' } as const

/** Suggestions of one answer, as the protocol has it. */
const MAX_VALUES = 100

/** Answers requests for resources, prompts and completions. */
export const serveContent = (server: Server, source: ContentSource): void => {
  server.setRequestHandler('resources/list', () => ({
    resources: source.resources().map(({ text: _text, ...resource }) => resource),
  }))
  const served = recordResources.filter(({ operations }) => operations.every(source.mayRun))
  server.setRequestHandler('resources/templates/list', () => ({
    resourceTemplates: served.map(({ uriTemplate, name, title, description, mimeType }) => ({
      uriTemplate,
      name,
      title,
      description,
      mimeType,
    })),
  }))
  server.setRequestHandler('resources/read', async ({ params: { uri } }, context) => {
    const found = source.resources().find((each) => each.uri === uri)
    if (found) return { contents: [{ uri, mimeType: found.mimeType, text: found.text() }] }
    const record = findRecord(uri)
    const text =
      record && served.includes(record.resource)
        ? await record.resource.read(source.run(context), record.value)
        : undefined
    if (text === undefined) throw resourceNotFound(uri, record?.resource, source, served)
    return { contents: [{ uri, mimeType: record!.resource.mimeType, text }], ...notCached }
  })
  server.setRequestHandler('prompts/list', () => ({ prompts }))
  server.setRequestHandler('prompts/get', ({ params }) => {
    const found = getPrompt(params.name, params.arguments)
    if (!found) throw invalidParams(explainNoPrompt(params.name, params.arguments))
    return found
  })
  server.setRequestHandler('completion/complete', async ({ params: { ref, argument } }, context) => {
    const { name, value } = argument
    const complete =
      ref.type === 'ref/prompt'
        ? findArgument(ref.name, name)?.complete
        : served.find((each) => each.uriTemplate === ref.uri && each.variable === name)?.complete
    const values = complete ? await suggest(() => complete(source.run(context), value)) : []
    return { completion: { values: values.slice(0, MAX_VALUES), hasMore: false } }
  })
}

/** Lists the URIs that exist, which the requested one may be a misspelling of. */
const resourceNotFound = (
  uri: string,
  asked: RecordResource | undefined,
  source: ContentSource,
  served: readonly RecordResource[],
): ResourceNotFoundError => {
  const shown = redactApiKeys(uri)
  const addresses = [...source.resources().map((each) => each.uri), ...served.map((each) => each.uriTemplate)]
  const fix =
    asked && served.includes(asked)
      ? `The address is ${asked.uriTemplate}: ${asked.description}`
      : `There are ${addresses.join(', ')}.`
  return new ResourceNotFoundError(shown, `Resource not found: ${shown}. ${fix}`)
}

/** What the caller may not search has no suggestions. */
const suggest = async (find: () => string[] | Promise<string[]>): Promise<string[]> => {
  try {
    return await find()
  } catch (error) {
    if (error instanceof ProtocolError && error.code === ProtocolErrorCode.InvalidParams) return []
    throw error
  }
}

/** Returns the error of a request whose parameters are wrong. */
export const invalidParams = (message: string, data?: unknown): ProtocolError =>
  new ProtocolError(ProtocolErrorCode.InvalidParams, redactApiKeys(message), data)
