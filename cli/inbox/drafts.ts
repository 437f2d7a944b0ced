import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { credentialsPath } from '../credentials-file.ts'
import { makePrivate, writePrivateFile } from '../files.ts'
import type { Draft } from './state.ts'

type Env = Readonly<Record<string, string | undefined>>

/** Drafts are kept over a restart, in a file that only its owner can read. `owner`: of whom they are. */
const draftsPath = (env: Env): string => join(dirname(credentialsPath(env)), 'drafts.json')

type Stored = Record<string, Record<string, Draft>>

const readAll = (env: Env): Stored => {
  try {
    const path = draftsPath(env)
    makePrivate(path)
    return JSON.parse(readFileSync(path, 'utf8')) as Stored
  } catch {
    return {}
  }
}

const isDraft = (value: unknown): value is Draft => {
  const { kind, text, at } = (value ?? {}) as Partial<Draft>
  return (kind === 'reply' || kind === 'note') && typeof text === 'string' && Number.isSafeInteger(at)
}

/** Returns the drafts by conversation; none when the file is unreadable. */
export const readDrafts = (env: Env, owner: string): Map<string, Draft> => {
  const stored = readAll(env)
  return new Map(Object.entries(stored[owner] ?? {}).filter(([, draft]) => isDraft(draft)))
}

export const writeDrafts = (env: Env, owner: string, drafts: ReadonlyMap<string, Draft>): void => {
  const kept = Object.fromEntries([...drafts].filter(([, { text }]) => text !== ''))
  writePrivateFile(draftsPath(env), `${JSON.stringify({ ...readAll(env), [owner]: kept })}\n`)
}
