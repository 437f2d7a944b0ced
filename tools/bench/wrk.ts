import { execFile, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

export type WrkRequest = { method?: string; path: string; headers?: Record<string, string>; body?: string }
/** Requests, requests per second, and latencies in milliseconds. */
export type WrkSample = { requests: number; rate: number; p50: number; p99: number }

const script = fileURLToPath(new URL('requests.lua', import.meta.url))

export const requireWrk = (): void => {
  if (spawnSync('wrk', ['-v']).error) throw new Error('The benchmark needs wrk (Debian: apt-get install wrk)')
}

/** Writes the requests that wrk replays. Returns the path of the file. */
export const writeRequests = (folder: string, name: string, requests: WrkRequest[]): string => {
  const file = join(folder, `${name.replaceAll(/\W+/g, '-')}.requests`)
  const line = ({ method = 'GET', path, headers = {}, body = '' }: WrkRequest) =>
    [
      method,
      path,
      Object.entries(headers)
        .map(([k, v]) => `${k}=${v}`)
        .join(';'),
      body,
    ].join('\t')
  writeFileSync(file, requests.map(line).join('\n'))
  return file
}

const parseMilliseconds = (text: string): number => {
  const [, number, unit] = /([\d.]+)(us|ms|s|m)/.exec(text) ?? []
  return Number(number) * { us: 0.001, ms: 1, s: 1000, m: 60_000 }[unit as 'us' | 'ms' | 's' | 'm']
}

/**
 * Runs one round. Throws when a response was not 2xx. `base`: the first of the numbers in request bodies;
 * `rows`: see `requests.lua`.
 */
export const runWrkRound = async (
  url: string,
  file: string,
  round: { seconds: number; connections: number; base: number; rows?: number },
): Promise<WrkSample> => {
  const { seconds, connections, base, rows = 1 } = round
  const { stdout } = await promisify(execFile)('wrk', [
    '-t1',
    `-c${connections}`,
    `-d${seconds}s`,
    '--latency',
    '-s',
    script,
    url,
    '--',
    file,
    String(base),
    String(rows),
  ])
  if (/Non-2xx|Socket errors/.test(stdout) || !/ 99%/.test(stdout))
    throw new Error(`a round failed:\n${stdout}`)
  const at = (percent: string) =>
    parseMilliseconds(new RegExp(`^ +${percent}% +(\\S+)`, 'm').exec(stdout)![1]!)
  return {
    requests: Number(/(\d+) requests in/.exec(stdout)![1]),
    rate: Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)![1]),
    p50: at('50'),
    p99: at('99'),
  }
}
