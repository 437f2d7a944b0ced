import { randomUUID } from 'node:crypto'
import type { Plan } from '../../catalog/plan.ts'
import { usageError } from '../error.ts'
import { type CommandSpec, commandName } from '../manifest.ts'
import { callOperation, type ServerConnection } from '../remote.ts'
import { readSteps, type Step, writeSteps } from './file.ts'
import { formatStep } from './show.ts'

const readWorkspace = async (to: ServerConnection): Promise<Step['workspace']> => {
  try {
    return (await callOperation(to, 'workspace_whoami', {})).value['workspace'] as Step['workspace']
  } catch {
    return null
  }
}

/** Splits a call whose ids are more than the operation takes at a time. */
const toBatches = (spec: CommandSpec, input: Readonly<Record<string, unknown>>) => {
  const field = spec.fields.find((f) => f.name === spec.batch)
  const ids = field && input[field.name]
  if (!field?.ids || !Array.isArray(ids) || ids.length <= field.ids) return [input]
  return Array.from({ length: Math.ceil(ids.length / field.ids) }, (_, i) => ({
    ...input,
    [field.name]: ids.slice(i * field.ids!, (i + 1) * field.ids!),
  }))
}

/**
 * Makes a dry run of a change and appends what it would do to a plan, each step with a key of its own. Prints the new
 * steps on stdout. Returns the exit code; throws a CLI error, after which the file is as it was.
 */
export const makePlan = async (
  { to, spec }: { to: ServerConnection; spec: CommandSpec },
  given: Readonly<Record<string, unknown>>,
  { path, key, json }: { path: string; key: string | undefined; json: boolean },
): Promise<number> => {
  const { io } = to
  const steps = readSteps(path)
  const { dry_run: _, ...input } = given
  const batches = toBatches(spec, input)
  if (key !== undefined && batches.length > 1)
    throw usageError('One idempotency key cannot be used for several calls.', '--idempotency-key')
  const workspace = await readWorkspace(to)
  const added: Step[] = []
  for (const batch of batches) {
    const dryRun = await callOperation(to, spec.operation, { ...batch, dry_run: true }, { plan: 'show' })
    const { plan, dry_run: _mark, ...answer } = dryRun.value
    added.push({
      wcrm_plan: 1,
      made_at: new Date().toISOString(),
      version: to.version,
      server: to.url,
      workspace,
      command: commandName(spec),
      operation: spec.operation,
      input: batch,
      confirm: spec.confirm ?? null,
      idempotency_key: key ?? randomUUID(),
      answer,
      plan: plan as Plan,
    })
  }
  writeSteps(path, [...steps, ...added])
  io.stdout.write(
    json
      ? `${JSON.stringify({ steps: added })}\n`
      : added
          .flatMap((step, i) => formatStep(step, steps.length + i))
          .map((line) => `${line}\n`)
          .join(''),
  )
  return 0
}
