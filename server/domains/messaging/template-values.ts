import type { z } from 'zod'
import type { SendTemplate } from '../../../catalog/send-template.ts'
import { type FieldError, toPointer } from '../../kernel/problem.ts'

/** The values that a send fills a template with. */
export type TemplateValues = z.output<typeof SendTemplate>

type ValuePath = readonly (string | number)[]

/** Collects the errors in the values of a template, below one path of the input. */
export type ValueErrors = {
  add: (path: ValuePath, code: string, detail: string, fix: string) => void
  /** The same collection below a deeper place. */
  at: (...path: ValuePath) => ValueErrors
}

/** `base`: the place below `template` that paths are relative to. */
export const collectValueErrors = (errors: FieldError[], base: ValuePath = []): ValueErrors => ({
  add: (path, code, detail, fix) => {
    errors.push({ pointer: toPointer(['template', ...base, ...path]), code, detail, fix })
  },
  at: (...path) => collectValueErrors(errors, [...base, ...path]),
})

/**
 * Checks a text value by the rules of the provider (error 132018): no line breaks or tabs, no five spaces in
 * a row, not blank.
 */
export const checkTextValue = (value: string, path: ValuePath, errors: ValueErrors): void => {
  if (value.trim() === '')
    errors.add(path, 'blank', 'is blank, which the provider refuses', 'Send text that is not blank.')
  else if (/[\n\r\t\v\f\u0085\u2028\u2029]/.test(value))
    errors.add(
      path,
      'line_break',
      'has a line break or tab, which the provider refuses',
      'Put it on one line.',
    )
  else if (/ {5}/.test(value))
    errors.add(
      path,
      'too_many_spaces',
      'has more than four spaces in a row, which the provider refuses',
      'Remove the extra spaces.',
    )
}
