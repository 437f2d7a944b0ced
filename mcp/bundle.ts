import { bridgeStdio } from './stdio.ts'

/**
 * The program of the `.mcpb` bundle: the stdio bridge with its settings from the environment, as a desktop client
 * sets them from its form. It imports nothing of the server, so that the bundle stays small.
 */

/** A setting; undefined when it is empty, or when the client left its placeholder. */
const read = (name: string): string | undefined => {
  const value = process.env[name]?.trim()
  return value === undefined || value === '' || value.startsWith('${') ? undefined : value
}

const isOn = (name: string): boolean => /^(?:1|true|yes|on)$/i.test(read(name) ?? '')

/** Fails closed: whatever is not clearly off means reads only. */
const isReadOnly = (): boolean => !/^(?:0|false|no|off)$/i.test(read('WCRM_READONLY') ?? 'false')

const main = async (): Promise<void> => {
  const base = read('WCRM_URL') ?? 'http://127.0.0.1:8787'
  const apiKey = read('WCRM_API_KEY')
  if (!/^https?:/i.test(base) || !URL.canParse(base))
    throw new Error('The address of the server is not an http(s) URL.')
  if (apiKey === undefined)
    throw new Error('The API key is missing: make one with `wcrm admin keys create --agent`.')
  const toolsets = read('WCRM_TOOLSETS')
  const query = new URLSearchParams({
    ...(toolsets === undefined ? {} : { toolsets }),
    ...(isReadOnly() ? { readonly: 'true' } : {}),
    ...(isOn('WCRM_COMPACT') ? { mode: 'compact' } : {}),
  })
  await bridgeStdio({
    url: `${base.replace(/\/+$/, '')}/mcp${query.size > 0 ? `?${query}` : ''}`,
    apiKey,
    input: process.stdin,
    output: process.stdout,
  })
}

try {
  await main()
} catch (error) {
  process.stderr.write(`wcrm: ${(error as Error).message}\n`)
  process.exitCode = 1
}
