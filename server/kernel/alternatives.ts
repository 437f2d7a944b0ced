import { z } from 'zod'
import type { Alternative, Operation } from '../../catalog/index.ts'
import { invalidField, type Problem } from './problem.ts'

/** Returns the values that a field takes; undefined when they are not listed. */
const listValues = (op: Operation, field: string): readonly string[] | undefined => {
  const schema = op.input.shape[field]
  const inner = schema instanceof z.ZodOptional ? schema.unwrap() : schema
  return inner instanceof z.ZodEnum ? inner.options.map(String) : undefined
}

const missingProblem = (alternatives: readonly Alternative[]): Problem => {
  const [first, ...others] = alternatives.map(({ needs }) => needs[0]!)
  const ways = alternatives.map(({ needs }) => needs.join(' with '))
  return invalidField(first!, 'required', `or ${others.join(' or ')} is required`, {
    fix: `Send one of ${ways.slice(0, -1).join(', ')} and ${ways.at(-1)}.`,
  })
}

/**
 * Checks that exactly one alternative of an operation is given, whole, and nothing of the others. The first field
 * that an alternative needs says that it is meant. Throws 400.
 */
export const checkAlternatives = (op: Operation, input: Readonly<Record<string, unknown>>): void => {
  const alternatives = op.alternatives ?? []
  if (alternatives.length === 0) return
  const [chosen, second] = alternatives.filter(({ needs }) => input[needs[0]!] !== undefined)
  if (!chosen) throw missingProblem(alternatives)
  const [key, ...rest] = chosen.needs
  if (second)
    throw invalidField(second.needs[0]!, 'ambiguous', `cannot be combined with ${key}`, {
      fix: 'Send only one of them.',
    })
  for (const { needs, takes = [] } of alternatives.filter((other) => other !== chosen)) {
    const stray = [...needs, ...takes].find((field) => input[field] !== undefined)
    if (stray !== undefined)
      throw invalidField(stray, 'not_allowed', `is only allowed with ${needs[0]}`, {
        fix: `Remove it, or send ${needs[0]}.`,
      })
  }
  const missing = rest.find((field) => input[field] === undefined)
  if (missing !== undefined) {
    const allowed = listValues(op, missing)
    throw invalidField(missing, 'required', `is required with ${key}`, {
      fix: 'Send it too.',
      ...(allowed ? { allowed: [...allowed] } : {}),
    })
  }
}
