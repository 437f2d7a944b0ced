import { createHmac, randomBytes } from 'node:crypto'
import {
  CLIENT_CAPABILITIES_META_KEY,
  inputRequired,
  LOG_LEVEL_META_KEY,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  type Server,
  type ServerContext,
} from '@modelcontextprotocol/server'

/*
 * The tools, resources and prompts that the conformance suite asks for by name. They take the place of the
 * product's own on its endpoint, so that the suite tries the product's HTTP, authentication and dispatch.
 */

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA='

type Result = Record<string, unknown>
type Tool = (context: ServerContext, input: Record<string, unknown>) => Result | Promise<Result>

const say = (text: string): Result => ({ content: [{ type: 'text', text }] })
const image = { type: 'image', data: PNG, mimeType: 'image/png' }
const embedded = (uri: string, mimeType: string, text: string) => ({
  type: 'resource',
  resource: { uri, mimeType, text },
})
const pause = () => new Promise((resolve) => setTimeout(resolve, 50))

const capabilitiesOf = ({ mcpReq }: ServerContext): Record<string, unknown> =>
  ((mcpReq.envelope as Record<string, unknown> | undefined)?.[CLIENT_CAPABILITIES_META_KEY] ?? {}) as Record<
    string,
    unknown
  >

const form = (message: string, properties: Record<string, object>, required: string[]) => ({
  message,
  requestedSchema: { type: 'object' as const, properties, required },
})
const askFor = (field: string, message: string, type = 'string') =>
  inputRequired.elicit(form(message, { [field]: { type } }, [field]) as never)
const sample = (text: string, maxTokens: number) =>
  inputRequired.createMessage({ messages: [{ role: 'user', content: { type: 'text', text } }], maxTokens })

/** What the client answered to a question, if it is an answer. */
const answerTo = ({ mcpReq }: ServerContext, key: string): Record<string, any> | undefined => {
  const given = mcpReq.inputResponses?.[key]
  return typeof given === 'object' && given !== null ? (given as Record<string, any>) : undefined
}

const secret = randomBytes(32)
const sign = (text: string) => `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`
/** Returns the state of this round; throws when it was changed on the way. */
const readState = ({ mcpReq }: ServerContext): string | undefined => {
  const state = mcpReq.requestState() as unknown
  if (state === undefined) return undefined
  const text = String(state).split('.')[0]!
  if (sign(text) !== state)
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'requestState is not ours')
  return text
}

const ask = (requests: Record<string, object>, state?: string): Result =>
  inputRequired({
    inputRequests: requests,
    ...(state === undefined ? {} : { requestState: sign(state) }),
  } as never) as unknown as Result

const name = { user_name: askFor('name', 'What is your name?') }
const log = (context: ServerContext, data: string) =>
  context.mcpReq.notify({ method: 'notifications/message', params: { level: 'info', data } })

const contentTools: Record<string, Tool> = {
  test_simple_text: () => say('This is a simple text response for testing.'),
  test_image_content: () => ({ content: [image] }),
  test_audio_content: () => ({ content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }] }),
  test_embedded_resource: () => ({
    content: [embedded('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')],
  }),
  test_multiple_content_types: () => ({
    content: [
      { type: 'text', text: 'Multiple content types test:' },
      image,
      embedded('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
    ],
  }),
  test_error_handling: () => ({
    ...say('This tool intentionally returns an error for testing'),
    isError: true,
  }),
}

const streamingTools: Record<string, Tool> = {
  test_tool_with_logging: async (context) => {
    for (const text of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
      await log(context, text)
      await pause()
    }
    return say('Logged.')
  },
  test_logging_tool: async (context) => {
    const envelope = context.mcpReq.envelope as Record<string, unknown> | undefined
    if (envelope?.[LOG_LEVEL_META_KEY] !== undefined) await log(context, 'Asked to log')
    return say('Done.')
  },
  test_tool_with_progress: async (context) => {
    const progressToken = context.mcpReq._meta?.progressToken ?? 0
    for (const progress of [0, 50, 100]) {
      await context.mcpReq.notify({
        method: 'notifications/progress',
        params: { progressToken, progress, total: 100 },
      })
      await pause()
    }
    return say(String(progressToken))
  },
  test_missing_capability: (context) => {
    if (capabilitiesOf(context)['sampling'] === undefined)
      throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { sampling: {} } })
    return say('The client can sample.')
  },
  test_streaming_elicitation: () => ask(name),
  test_trigger_tool_change: () => say('Nothing changes here.'),
}

const questions: Record<string, Tool> = {
  test_input_required_result_elicitation: (context) => {
    const answer = answerTo(context, 'user_name')?.['content']?.name
    return typeof answer === 'string' ? say(`Hello, ${answer}!`) : ask(name)
  },
  test_input_required_result_sampling: (context) => {
    const answer = answerTo(context, 'capital_question')
    return answer
      ? say(String(answer['content']?.text ?? JSON.stringify(answer)))
      : ask({ capital_question: sample('What is the capital of France?', 100) })
  },
  test_input_required_result_list_roots: (context) => {
    const answer = answerTo(context, 'client_roots')
    return answer ? say(JSON.stringify(answer['roots'])) : ask({ client_roots: inputRequired.listRoots() })
  },
  test_input_required_result_request_state: (context) =>
    readState(context) === 'one' && answerTo(context, 'confirm')
      ? say('state-ok')
      : ask({ confirm: askFor('ok', 'Please confirm', 'boolean') }, 'one'),
  test_input_required_result_multiple_inputs: (context) =>
    readState(context) === 'many' &&
    ['user_name', 'greeting', 'client_roots'].every((key) => answerTo(context, key))
      ? say('All three are here.')
      : ask(
          { ...name, greeting: sample('Generate a greeting', 50), client_roots: inputRequired.listRoots() },
          'many',
        ),
  test_input_required_result_multi_round: (context) => {
    const state = readState(context)
    if (state === 'second' && answerTo(context, 'step2')) return say('Both steps are done.')
    return state === 'first' && answerTo(context, 'step1')
      ? ask({ step2: askFor('color', 'Step 2: What is your favorite color?') }, 'second')
      : ask({ step1: askFor('name', 'Step 1: What is your name?') }, 'first')
  },
  test_input_required_result_tampered_state: (context) =>
    readState(context) === 'sealed' && answerTo(context, 'confirm')
      ? say('state-ok')
      : ask({ confirm: askFor('ok', 'Please confirm', 'boolean') }, 'sealed'),
  test_input_required_result_capabilities: (context) => {
    const capabilities = capabilitiesOf(context)
    return ask({
      ...(capabilities['elicitation'] === undefined ? {} : name),
      ...(capabilities['sampling'] === undefined ? {} : { greeting: sample('Say hello', 50) }),
    })
  },
}

const options = ['option1', 'option2', 'option3']
const titled = (words: string[]) =>
  words.map((word, i) => ({ const: `value${i + 1}`, title: `${word} Option` }))
const defaults = {
  name: { type: 'string', default: 'John Doe' },
  age: { type: 'integer', default: 30 },
  score: { type: 'number', default: 95.5 },
  status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
  verified: { type: 'boolean', default: true },
}
const enums = {
  untitledSingle: { type: 'string', enum: options },
  titledSingle: { type: 'string', oneOf: titled(['First', 'Second', 'Third']) },
  legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['One', 'Two', 'Three'] },
  untitledMulti: { type: 'array', items: { type: 'string', enum: options } },
  titledMulti: { type: 'array', items: { anyOf: titled(['First', 'Second', 'Third']) } },
}

/** A tool that asks one question and tells the answer; the endpoint asks clients of 2025 revisions on a stream. */
const elicit =
  (question: (input: Record<string, unknown>) => object): Tool =>
  (context, input) => {
    const answer = answerTo(context, 'form')
    return answer
      ? say(
          `Elicitation completed: action=${answer['action']}, content=${JSON.stringify(answer['content'] ?? {})}`,
        )
      : ask({ form: inputRequired.elicit(question(input) as never) })
  }
const clientQuestions: Record<string, Tool> = {
  test_sampling: (context, { prompt }) => {
    const answer = answerTo(context, 'answer')
    return answer
      ? say(`LLM response: ${answer['content']?.text}`)
      : ask({ answer: sample(String(prompt), 100) })
  },
  test_elicitation: elicit(({ message }) =>
    form(String(message), { response: { type: 'string' } }, ['response']),
  ),
  test_elicitation_sep1034_defaults: elicit(() => form('Review the defaults', defaults, [])),
  test_elicitation_sep1330_enums: elicit(() => form('Select options', enums, [])),
}

/** Whether a fixture asks the client. */
export const asks = (tool: string): boolean => tool in clientQuestions

const tools: Record<string, Tool> = { ...contentTools, ...streamingTools, ...questions, ...clientQuestions }

const resources: Record<string, { mimeType: string; text?: string; blob?: string }> = {
  'test://static-text': { mimeType: 'text/plain', text: 'This is the content of the static text resource.' },
  'test://static-binary': { mimeType: 'image/png', blob: PNG },
  'test://watched-resource': { mimeType: 'text/plain', text: 'Watched resource content' },
}

const user = (content: object) => ({ role: 'user', content })
const prompts: Record<
  string,
  { names: string[]; get: (context: ServerContext, values: Record<string, string>) => Result }
> = {
  test_simple_prompt: {
    names: [],
    get: () => ({ messages: [user({ type: 'text', text: 'This is a simple prompt for testing.' })] }),
  },
  test_prompt_with_arguments: {
    names: ['arg1', 'arg2'],
    get: (_context, { arg1, arg2 }) => ({
      messages: [user({ type: 'text', text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'` })],
    }),
  },
  test_prompt_with_embedded_resource: {
    names: ['resourceUri'],
    get: (_context, { resourceUri }) => ({
      messages: [
        user(embedded(resourceUri!, 'text/plain', 'Embedded resource content for testing.')),
        user({ type: 'text', text: 'Please process the embedded resource above.' }),
      ],
    }),
  },
  test_prompt_with_image: {
    names: [],
    get: () => ({ messages: [user(image), user({ type: 'text', text: 'Please analyze the image above.' })] }),
  },
  test_input_required_result_prompt: {
    names: [],
    get: (context) => {
      const answer = answerTo(context, 'user_context')?.['content']?.context
      return typeof answer === 'string'
        ? { messages: [user({ type: 'text', text: `Context: ${answer}` })] }
        : ask({ user_context: askFor('context', 'What context should the prompt use?') })
    },
  },
}

/** Puts the fixtures of the suite in the place of the product's tools, resources and prompts. */
export const extend = (server: Server): void => {
  server.registerCapabilities({ logging: {} })
  server.setRequestHandler('tools/list', () => ({
    tools: Object.keys(tools).map((each) => ({
      name: each,
      description: `Fixture ${each}.`,
      inputSchema: { type: 'object' as const, properties: {} },
    })),
  }))
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const tool = tools[params.name]
    if (!tool) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool: ${params.name}`)
    return (await tool(context, params.arguments ?? {})) as never
  })
  server.setRequestHandler('resources/list', () => ({
    resources: Object.entries(resources).map(([uri, { mimeType }]) => ({
      uri,
      name: uri.slice(7),
      mimeType,
    })),
  }))
  server.setRequestHandler('resources/templates/list', () => ({
    resourceTemplates: [{ uriTemplate: 'test://template/{id}/data', name: 'template' }],
  }))
  server.setRequestHandler('resources/read', ({ params: { uri } }) => {
    const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1]
    const found = id
      ? {
          mimeType: 'application/json',
          text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
        }
      : resources[uri]
    if (!found) throw new ResourceNotFoundError(uri)
    return { contents: [{ uri, ...found } as never] }
  })
  server.setRequestHandler('resources/subscribe', () => ({}))
  server.setRequestHandler('resources/unsubscribe', () => ({}))
  server.setRequestHandler('logging/setLevel', () => ({}))
  server.setRequestHandler('prompts/list', () => ({
    prompts: Object.entries(prompts).map(([each, { names }]) => ({
      description: `Fixture ${each}.`,
      name: each,
      arguments: names.map((argument) => ({ name: argument, required: true })),
    })),
  }))
  server.setRequestHandler('prompts/get', ({ params }, context) => {
    const prompt = prompts[params.name]
    if (!prompt) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown prompt: ${params.name}`)
    return prompt.get(context, params.arguments ?? {}) as never
  })
  server.setRequestHandler('completion/complete', () => ({ completion: { values: ['test'] } }))
}
