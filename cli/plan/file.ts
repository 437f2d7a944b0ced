import { readFileSync } from 'node:fs'
import { isObject } from '../../catalog/values.ts'
import type { Plan } from '../../catalog/plan.ts'
import { usageError } from '../error.ts'
import { makePrivate, writePrivateFile } from '../files.ts'

/** One change of a plan: a line of its file. */
export type Step = {
  /** The version of this format. */
  readonly wcrm_plan: 1
  readonly made_at: string
  readonly version: string
  readonly server: string
  /** Null where the key cannot read it. */
  readonly workspace: { readonly id: string; readonly name: string } | null
  readonly command: string
  readonly operation: string
  readonly input: Readonly<Record<string, unknown>>
  /** The verb that confirms it; null where it needs none. */
  readonly confirm: string | null
  readonly idempotency_key: string
  /** What the dry run answered. */
  readonly answer: Readonly<Record<string, unknown>>
  readonly plan: Plan
  /** When it was applied. */
  readonly applied_at?: string
}

const isStep = (value: unknown): value is Step =>
  isObject(value) &&
  value['wcrm_plan'] === 1 &&
  ['operation', 'server', 'idempotency_key', 'command'].every((name) => typeof value[name] === 'string') &&
  isObject(value['input']) &&
  isObject(value['plan']) &&
  typeof value['plan']['token'] === 'string' &&
  Array.isArray(value['plan']['records'])

const parseLine = (line: string): unknown => {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

/** Reads the steps of a plan; none when there is no such file. Throws a usage error for any other file. */
export const readSteps = (path: string): Step[] => {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return []
    throw usageError(`${path} cannot be read: ${code}.`, 'file')
  }
  const steps = text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line, i) => {
      const step = parseLine(line)
      if (isStep(step)) return step
      throw usageError(
        `Line ${i + 1} of ${path} is no step of a plan.`,
        'file',
        'Write plans with --plan FILE, and to a file of their own.',
      )
    })
  // Not before it is known to be a plan: any other file keeps its mode.
  makePrivate(path)
  return steps
}

/** Replaces a plan at once; only its owner can read it. */
export const writeSteps = (path: string, steps: readonly Step[]): void =>
  writePrivateFile(path, steps.map((step) => `${JSON.stringify(step)}\n`).join(''))
