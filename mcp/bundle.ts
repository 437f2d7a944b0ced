import { readBridgeSettings, readSetting, toBridgePath } from './bridge-settings.ts'
import { bridgeStdio } from './stdio.ts'

/**
 * The program of the `.mcpb` bundle: the stdio bridge with its settings from the environment, as a desktop client
 * sets them from its form. It imports nothing of the server, so that the bundle stays small.
 */

const main = async (): Promise<void> => {
  const base = readSetting(process.env, 'WCRM_URL') ?? 'http://127.0.0.1:8787'
  const apiKey = readSetting(process.env, 'WCRM_API_KEY')
  if (!/^https?:/i.test(base) || !URL.canParse(base))
    throw new Error('The address of the server is not an http(s) URL.')
  if (apiKey === undefined)
    throw new Error('The API key is missing: make one with `wcrm admin keys create --agent`.')
  await bridgeStdio({
    url: base.replace(/\/+$/, '') + toBridgePath(readBridgeSettings(process.env)),
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
