"""Labels of the cells of a study: from tables, folders of gates, FlowJo workspaces, a column."""
