import assert from 'node:assert/strict'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FakeResponse, FakeServer } from './fake-server.ts'

/** A page of a list, as a response. */
export const page = (data: readonly object[], cursor: string | null = null): FakeResponse => ({
  body: { data, next_cursor: cursor },
})

/** Completes words in this process, with a cache in the folder of the fake server. */
export const createCompleter = (fake: FakeServer) => {
  const cache = join(fake.home, 'cache')
  const folder = join(cache, 'wcrm', 'completion')
  const cacheFiles = (): string[] => readdirSync(folder).map((name) => join(folder, name))
  return {
    cache,
    cacheFiles,
    /** `later` stands for a shell and has seconds to answer, so that a busy machine changes nothing. */
    complete: async (words: readonly string[], env: Record<string, string> = {}) => {
      const { exit, stdout, stderr } = await fake.wcrm(['__complete', 'later'], {
        stdin: ['wcrm', ...words].map((word) => `${word}\0`).join(''),
        env: { XDG_CACHE_HOME: cache, ...env },
      })
      assert.deepEqual([exit, stderr], [0, ''])
      const [how = '', ...lines] = stdout.split('\n').slice(0, -1)
      return {
        how,
        words: lines.map((line) => line.split('\t')[0]!),
        abouts: lines.map((line) => line.split('\t')[1] ?? ''),
      }
    },
    forget: () => rmSync(cache, { recursive: true, force: true }),
    /** Makes what was kept an hour old. */
    age: () => {
      for (const file of cacheFiles().filter((name) => name.endsWith('.json'))) {
        const lists = JSON.parse(readFileSync(file, 'utf8')) as Record<string, { at: number }>
        for (const entry of Object.values(lists)) entry.at -= 3_600_000
        writeFileSync(file, JSON.stringify(lists))
      }
    },
  }
}
