"""Makes the corpus of the base from clones of its sources; ../build.py is the command.

sources reads the table of ../SOURCES.md. The readers (books, markup, textbooks, dialogues) turn
the files of a clone into documents. prose and speech drop and repair what is bad in them. heldout
refuses the texts that the base is measured on, repeats what was there before. habits writes a
document as people do. pipeline puts these steps in a row.
"""
